"""What is known of models and servers before a call: families, limits, prices, keys, images."""
