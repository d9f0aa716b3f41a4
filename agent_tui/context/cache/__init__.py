"""What a provider's prompt cache should have given, what it gave, and why it gave less. Pure."""
