"""One protocol to drive a session from a program: typed requests, events and questions that the program answers."""
