"""Nothing for Python: the lane takes publishes apart."""
