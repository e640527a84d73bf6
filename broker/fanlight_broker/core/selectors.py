"""The way to selectors: what reads them and what asks them is imported here, with the first one.

Parser, screens and readers of bodies are 2 MB of modules, and 20 ms of imports, once. A broker whose clients have no
selectors does not need them: what it imports when it starts may import them for types alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition
    from fanlight_broker.core.screener import MessageScreener
    from fanlight_broker.core.stored_screener import StoredScreener
    from matchcore.body_reader import BodyCounts
    from matchcore.row_screener import RowScreener
    from matchcore.screen import Screen


def condition_of(where: str | Mapping[str, Any]) -> "Condition":
    """The condition that a client asks for: a text, or a dict as of EventBridge. Raises InvalidSelector."""
    from fanlight_broker.core import condition

    return condition.condition_of(where)


def condition_of_suffix(expression: bytes, condition: "Condition | None" = None) -> "Condition":
    """The condition behind the `?` of a filter, as EMQX spells it, and this other one. Raises InvalidFilter."""
    from fanlight_broker.core import condition as conditions

    return conditions.condition_of_suffix(expression, condition)


def where_of(condition: "Condition | None") -> str | None:
    """The text of a condition; None without one."""
    return condition.where if condition is not None else None


def new_screener(wall: Callable[[], float] | None) -> "MessageScreener":
    """What asks the screens of a router. wall: seconds since 1970."""
    from fanlight_broker.core.screener import MessageScreener
    from matchcore.fields import Attributes

    return MessageScreener(Attributes(), wall)


def new_stored(
    condition: "Condition", bodies: "BodyCounts", body_formats: Callable[[bytes, int], int] | None
) -> "StoredScreener":
    """What asks a selector about stored messages, one by one."""
    from fanlight_broker.core.stored_screener import StoredScreener

    return StoredScreener(condition.selector, bodies, body_formats)


def new_rows(condition: "Condition", bodies: "BodyCounts") -> "RowScreener":
    """What asks a selector about rows of the archive."""
    from matchcore.row_screener import RowScreener

    return RowScreener(condition.selector, bodies)


def new_screen(screener: "MessageScreener") -> "Screen":
    """The screen of a filter, which this screener is to ask."""
    from matchcore.screen import Screen

    return Screen(screener.reader.attributes)


def found_by(screen: "Screen", ids: Sequence[int], fields: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Through what a message with these fields comes to each of these selectors of a screen."""
    from matchcore.reached import found_by

    return found_by(screen, ids, fields)
