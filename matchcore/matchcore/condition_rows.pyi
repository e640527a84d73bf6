"""Nothing for Python: the compiled modules use it."""
