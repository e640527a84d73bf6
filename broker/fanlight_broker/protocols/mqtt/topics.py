"""Topic Names and Topic Filters (4.7), and the Shared Subscription's filter (4.8.2).

They are checked as they come off the wire, so that what reaches the core is well formed. What a filter matches is not
here: that is matchcore's.
"""

from typing import Final, NamedTuple

from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode

SHARE: Final = "$share/"


class SharedFilter(NamedTuple):
    """`$share/{share_name}/{filter}`."""

    share_name: str
    filter: str


def check_topic_name(topic: str, where: str) -> None:
    """Raises ProtocolError. `where` is the packet and field, for its text."""
    if not topic:
        raise ProtocolError(f"{where} is empty", ReasonCode.TOPIC_NAME_INVALID)  # [MQTT-4.7.3-1]
    if "#" in topic or "+" in topic:  # [MQTT-4.7.1-1] of 3.1.1, [MQTT-4.7.0-1] of 5.0
        raise ProtocolError(f"{where} {shown(topic)} has a wildcard", ReasonCode.TOPIC_NAME_INVALID)


def check_topic_filter(filter: str, where: str) -> SharedFilter | None:
    """The parts of a Shared Subscription's filter, None for any other. Raises ProtocolError."""
    # 4.8.2: $share in first place marks the filter as a Shared Subscription's, also with nothing behind it.
    shared = parse_shared(filter, where) if filter.startswith(SHARE) or filter == SHARE[:-1] else None
    levels = shared.filter if shared else filter
    if not levels:
        raise _invalid(where, filter, "it is empty")  # [MQTT-4.7.3-1]
    if "#" in levels or "+" in levels:
        _check_wildcards(levels, filter, where)
    return shared


def parse_shared(filter: str, where: str = "topic filter") -> SharedFilter:
    """The parts of a filter that begins with `$share/`. Raises ProtocolError; what is behind is not looked at."""
    share_name, slash, rest = filter[len(SHARE) :].partition("/")
    if not share_name:
        raise _invalid(where, filter, "its ShareName is empty")  # [MQTT-4.8.2-1]
    if "+" in share_name or "#" in share_name:  # [MQTT-4.8.2-2]
        raise _invalid(where, filter, "its ShareName has a wildcard")
    if not slash or not rest:
        raise _invalid(where, filter, "no Topic Filter follows its ShareName")
    return SharedFilter(share_name, rest)


def _check_wildcards(levels: str, filter: str, where: str) -> None:
    """`#` alone in the last level [MQTT-4.7.1-1], `+` alone in any [MQTT-4.7.1-2] (5.0)."""
    words = levels.split("/")
    for number, word in enumerate(words, 1):
        if len(word) > 1 and ("#" in word or "+" in word):
            raise _invalid(where, filter, f"level {number} has a wildcard and more")
        if word == "#" and number < len(words):
            raise _invalid(where, filter, f"# is level {number} of {len(words)}; it must be the last")


def _invalid(where: str, filter: str, why: str) -> ProtocolError:
    return ProtocolError(f"{where} {shown(filter)}: {why}", ReasonCode.TOPIC_FILTER_INVALID)


def shown(text: str) -> str:
    """A peer's text for an error, cut short."""
    return repr(text) if len(text) <= 60 else repr(text[:57]) + "..."
