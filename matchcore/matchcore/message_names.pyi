"""Nothing for Python: the names are looked at by the compiled modules only."""
