"""What is wrong with a topic or a filter, and where.

One tree: both are `TopicError`, which is a `ValueError`, so callers that only want to answer "bad
input" need one `except`. Each carries its numbers: the text, its syntax, the 0-based byte offset of
the fault, the reason and what to do about it.
"""

__all__ = ["InvalidFilter", "InvalidFrozenIndex", "InvalidSelector", "InvalidTopic", "TopicError"]

SHOWN_BYTES = 120  # of a text in a message: enough to recognise it, short enough for one log line


class TopicError(ValueError):
    """A topic name or a topic filter that cannot be taken.

    `text` is what was given (bytes), `position` the byte at which it goes wrong, counted from 0, and
    `row` the index of the topic within the sequence given to `match_many`, or None.
    """

    kind = "topic"

    def __init__(
        self, text: bytes, syntax: str, position: int, reason: str, advice: str, row: int | None = None
    ) -> None:
        super().__init__(text, syntax, position, reason, advice, row)
        self.text = text
        self.syntax = syntax
        self.position = position
        self.reason = reason
        self.advice = advice
        self.row = row

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row}: "
        return (
            f"{row}invalid {self.syntax} {self.kind} {shown(self.text)}, "
            f"byte {self.position} (counting from 0): {self.reason}; {self.advice}"
        )


class InvalidTopic(TopicError):
    """A topic name that its syntax does not allow, or that is beyond the limits."""

    kind = "topic"


class InvalidFilter(TopicError):
    """A topic filter that its syntax does not allow, or that is beyond the limits."""

    kind = "filter"


class InvalidSelector(ValueError):
    """A selector that cannot be read, or is beyond the limits.

    `text` is what was given (bytes), `position` the byte at which it goes wrong, counted from 0.
    """

    def __init__(self, text: bytes, position: int, reason: str, advice: str) -> None:
        super().__init__(text, position, reason, advice)
        self.text = text
        self.position = position
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        return (
            f"invalid selector {shown(self.text)}, byte {self.position} (counting from 0): {self.reason}; {self.advice}"
        )


class InvalidFrozenIndex(ValueError):
    """Bytes that are no FrozenIndex, or none that this version can read, or that have been damaged.

    `source` is the path of the file, or None for bytes; `reason` what is wrong with them.
    """

    def __init__(self, source: str | None, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        what = "these bytes are" if self.source is None else f"{self.source!r} is"
        return f"{what} no frozen index that can be read: {self.reason}"


class NotIndexed(LookupError):
    """A test that the rows of a record index cannot answer, where no callback verifies what they find.

    `test` is its text, `reason` what the index lacks.
    """

    def __init__(self, test: str, reason: str) -> None:
        super().__init__(test, reason)
        self.test = test
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.test}: {self.reason}; pass verify="


def shown(text: bytes) -> str:
    """`text` between quotes for a message: as UTF-8 where it is that, and cut to a line."""
    cut = text[:SHOWN_BYTES]
    more = f"... ({len(text)} bytes)" if len(text) > SHOWN_BYTES else ""
    return repr(cut.decode("utf-8", "backslashreplace")) + more
