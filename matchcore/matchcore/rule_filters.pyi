"""Nothing for Python: used by rule_table alone."""
