"""Helpers of a restart (recovery.py)."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fanlight_broker.core.errors import InvalidSelector
from fanlight_broker.core.selectors import condition_of
from fanlight_broker.core.topics import Canonical
from fanlight_broker.storage.records import BadRecord

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

Item = TypeVar("Item")


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python's garbage collector does not run meanwhile: nearly all that is made stays, and it would visit it often."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def batched(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    return (items[at : at + most] for at in range(0, len(items), most))


def namespace_in(key: Canonical | tuple[str, Canonical]) -> str | None:
    """Of a key of retained messages; None: it is the root's."""
    return key[0] if isinstance(key, tuple) and isinstance(key[0], str) else None


def restored_condition(where: str) -> "Condition":
    """Raises BadRecord: a later version may have a selector that this one cannot read."""
    try:
        return condition_of(where)
    except InvalidSelector as error:
        raise BadRecord(error.text) from error
