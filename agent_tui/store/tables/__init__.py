"""The tables: their schema, and what is written to and read from each."""
