"""What users and projects bring along: memory files, skills, commands, the prompt around them, and trust."""
