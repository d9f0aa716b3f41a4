"""What each message costs: measured by difference where it can be, else estimated."""
