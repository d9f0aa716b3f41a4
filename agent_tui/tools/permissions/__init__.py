"""May this call run: modes, rules, and the files that are protected whatever they say."""
