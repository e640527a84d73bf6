"""The text of a selector in fewer bytes: what occurs in most of them is one byte.

    user = 'u17' AND action = 'read'     ->     user 01 u17 02 action 01 read 03

A byte below 32 stands for one of these texts. A text that has such characters itself is kept as it is, behind a zero.
"""

__all__ = ["packed", "unpacked"]

SHORTENED = (
    "' AND ", " = '", " AND ", " OR ", " LIKE '", " IN ('", "', '", " >= ", " <= ", " = ", " IS NOT NULL",
    " BETWEEN ", "payload.", "NOT (",
)  # fmt: skip
CODES = tuple(zip(SHORTENED, map(chr, range(1, len(SHORTENED) + 1)), strict=True))
AS_IT_IS = "\0"


def packed(text: str) -> bytes:
    """Never empty."""
    if any(character < " " for character in text):
        return (AS_IT_IS + text).encode("utf-8", "surrogatepass")
    for plain, code in CODES:
        text = text.replace(plain, code)
    return text.encode("utf-8", "surrogatepass")


def unpacked(made: bytes) -> str:
    text = made.decode("utf-8", "surrogatepass")
    if text.startswith(AS_IT_IS):
        return text[1:]
    for plain, code in CODES:
        text = text.replace(code, plain)
    return text
