"""Passwords from files: the first line of one, or of standard input (-)."""

import sys
from pathlib import Path


def first_line(path: str) -> str:
    """Raises ValueError, OSError."""
    try:
        line = sys.stdin.readline() if path == "-" else Path(path).read_text(encoding="utf-8").partition("\n")[0]
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    password = line.rstrip("\r\n")
    if not password:
        raise ValueError(f"the first line of {path} is empty; it is to be the password")
    return password
