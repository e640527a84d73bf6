"""Nothing for Python: used by frozen.pyx alone."""
