"""Nothing for Python: the form is made for the compiled modules only."""
