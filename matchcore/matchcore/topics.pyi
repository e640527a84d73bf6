"""Nothing for Python: used by match_many only."""
