"""What rules say and what is decided: the words that the judge of commands and the permissions share."""
