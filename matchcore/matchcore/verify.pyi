"""Nothing for Python: the check word by word is used by the compiled modules only."""
