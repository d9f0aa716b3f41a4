"""What is known of programs: which options only look, what reaches out, what publishes."""
