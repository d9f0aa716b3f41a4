"""Rules and decisions: the words that the judge of commands and the permissions share."""
