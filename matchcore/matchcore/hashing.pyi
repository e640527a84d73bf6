"""Nothing for Python: the keyed hash is used by the compiled modules only."""
