"""What is sent of a stored conversation: the view of it, what stands for what was left out, what may be built on."""
