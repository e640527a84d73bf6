class KeptAnswer:
    valid: bool
