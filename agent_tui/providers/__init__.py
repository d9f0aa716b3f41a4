"""Model providers: the worker process and its client, wire conversion, limits, counting, the demo model."""
