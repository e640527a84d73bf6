"""Nothing for Python: the word dictionary is used by the compiled modules only."""
