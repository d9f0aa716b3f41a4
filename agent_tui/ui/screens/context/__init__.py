"""The context screen: what the next request is made of, and how every number was made."""
