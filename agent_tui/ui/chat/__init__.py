"""The parts that the application is put together from: each does one thing and is given the others it needs."""
