"""What is done to the session as a whole: another session, another model, another mode."""
