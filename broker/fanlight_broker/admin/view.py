"""A view that a part shows by HTTP: what it is asked with, and what it may return."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final

from fanlight_broker.core.errors import FanlightError

Query = Mapping[str, str]
Answer = tuple[int, dict[str, Any]]  # HTTP status, JSON object
Steps = Generator[None, None, Answer]  # of one that takes long: see slices.py
PartView = Callable[[Query], Answer | Steps | Awaitable[Answer]]


class BadQuery(FanlightError):
    """A query that cannot be answered; HTTP 400."""


ROWS_MAX: Final = 1_000  # some 300 kB of JSON and a few ms of the loop that routes messages
ROWS: Final = 100
OFFSET_MAX: Final = 2**53  # the largest integer that every JSON reader has


def limit_of(query: Query) -> int:
    """How many rows are asked for. Raises BadQuery."""
    return number_of(query, "limit", ROWS, 1, ROWS_MAX)


def number_of(query: Query, name: str, default: int, least: int, most: int) -> int:
    """Raises BadQuery."""
    raw = query.get(name)
    if raw is None:
        return default
    # isascii: isdigit alone accepts digits that int() does not; no number here has 20 digits.
    if raw.isascii() and raw.isdigit() and len(raw) < 20 and least <= int(raw) <= most:
        return int(raw)
    raise BadQuery(f"{name}={raw[:40]} must be a whole number from {least} to {most}")


def choice_of(query: Query, name: str, choices: tuple[str, ...], default: str) -> str:
    """One of some words. Raises BadQuery."""
    found = query.get(name, default)
    if found not in choices:
        raise BadQuery(f"{name}={found[:40]} must be one of {', '.join(choices)}")
    return found
