"""The parts that the application is put together from: each object does one thing and names what it needs in a
protocol."""
