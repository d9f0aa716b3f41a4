"""What the Agent says of its project and installation."""
