"""What people and programs are told and asked; knows no widget."""
