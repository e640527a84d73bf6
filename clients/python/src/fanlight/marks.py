"""Marks: publishing so that the broker takes each message once (docs/native-protocol.md, 3.8).

A producer numbers what it publishes with (batch, sequence), which only grow, and may begin anew wherever it likes:
what is not above the highest that the broker has taken from it is neither routed nor archived a second time.
"""

from typing import TYPE_CHECKING, NamedTuple, Self

from .errors import Unsupported
from .frames import is_mark

if TYPE_CHECKING:
    from .frames import Welcome

FEATURE = "marks"


class Mark(NamedTuple):
    """Which message of a producer this one is. Both numbers are 0 to 2^64-1; a batch begins at any sequence."""

    producer: str
    """Its name, 1 to 255 bytes; nobody else may use it under the same user."""
    batch: int
    sequence: int

    def checked(self) -> Self:
        """Itself. Raises ValueError for one that would cost the connection."""
        if not is_mark([*self]):
            raise ValueError(
                f"a mark has a producer's name of 1 to 255 bytes, a batch and a sequence from 0 to 2^64-1; got {self!r}"
            )
        return self


class Routed(int):
    """The broker's receipt: to how many subscriptions a message was routed."""

    repeated: bool
    """By its mark the broker had taken the message before, and did not take it again."""
    delayed: bool
    """The broker keeps the message until it is due; nobody has got it yet, so the number is 0."""
    id: int | None
    """Of a delayed message, for `cancel`. None: it is not delayed, or the broker says none."""

    def __new__(cls, routed: int, repeated: bool = False, delayed: bool = False, id: int | None = None) -> Self:
        self = super().__new__(cls, routed)
        self.repeated = repeated
        self.delayed = delayed
        self.id = id
        return self


def check_support(welcome: "Welcome | None") -> None:
    """Raise Unsupported for a broker that would ignore a mark. None: it has not been spoken to yet."""
    if welcome is not None and FEATURE not in (welcome.info.get("features") or ()):
        raise Unsupported(
            "this broker knows no marks: a message that is published again would be taken again; "
            "publish without a mark if that does no harm",
            code="unsupported",
        )
