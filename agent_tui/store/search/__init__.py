"""Finding sessions by what was said in them."""
