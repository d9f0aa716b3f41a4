"""The same agent without a screen: prompts in, outcomes on standard output, an exit code a script can rely on."""
