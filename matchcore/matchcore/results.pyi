"""Nothing for Python: the gathering of ids is used by the compiled modules only."""
