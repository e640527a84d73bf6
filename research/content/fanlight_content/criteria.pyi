class CriteriaIndex:
    """Which criteria are true of a message; for compiled code only."""
