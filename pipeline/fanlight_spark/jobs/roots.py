"""The root of a topic, its first word, as a column: by it messages are counted and laid out."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

OTHER: Final = "_other"  # no folder_name is that: none begins with _
NAME_MAX: Final = 64  # letters


def root(topic: str = "topic", syntax: str = "syntax") -> Column:
    """The first word of a topic, in the spelling that the other column names. `/a` begins with an empty word."""
    slash, dot = F.substring_index(topic, "/", 1), F.substring_index(topic, ".", 1)
    return F.when(F.col(syntax) == "mqtt", slash).otherwise(dot)


def folder_name(word: Column) -> Column:
    """A word as a folder may be called on any system: ASCII letters, digits, `.`, `_` and `-`, of bounded length.

    Different words may share a name; it is a place, and the topic itself is in the rows.
    """
    plain = F.regexp_replace(F.substring(word, 1, NAME_MAX), "[^A-Za-z0-9._-]", "_")
    plain = F.regexp_replace(plain, "^_", "-")
    return F.when(plain == "", "-").otherwise(plain)


def kept(name: Column, roots: list[str]) -> Column:
    """The name, or `_other` for any other root."""
    return F.when(name.isin(roots), name).otherwise(OTHER) if roots else F.lit(OTHER)
