"""A session together with the model it talks to: what is sent of it, what that counts, how it is asked."""
