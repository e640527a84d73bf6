"""The grammar in C; grammar.py is its face."""

def scan(
    text: str | bytes, syntax: str, is_filter: bool, max_words: int, max_bytes: int
) -> list[tuple[int, bytes]]: ...
