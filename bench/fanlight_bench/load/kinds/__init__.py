"""What a scenario can be besides one stream of messages, and the options that each kind has.

A scenario file says `kind = "..."` and gives options in a table [options]; what is left out has the value below. Each
kind is measured by the module of its name in this folder, all with the same call and the same Result.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STREAM = "stream"


@dataclass(frozen=True)
class Connects:
    """Clients connect, stay for a while and go: a storm."""

    at_once: int = 100    # handshakes under way
    stay: int = 1_000     # connected at a time: when one more comes, the oldest goes


@dataclass(frozen=True)
class Idle:
    """Connections that do nothing; at the end each must still answer."""

    connections: int = 10_000
    at_once: int = 100


@dataclass(frozen=True)
class Churn:
    """The stream that the scenario describes, in turns without and with subscriptions that come and go."""

    changes: int = 10_000                       # a second: half subscribe, half unsubscribe
    connections: int = 10                       # that do it
    filters: str = "churn/{i/100}/+/{i%100}/#"  # none of which may match a topic of the stream
    standing: int = 5_000                       # subscriptions at a time
    turns: int = 4                              # of each sort


@dataclass(frozen=True)
class Resubscribe:
    """The stream, in turns without and with one filter that matches it and is subscribed to and given up again."""

    changes: int = 100          # subscriptions a second, each given up before the next
    filter: str = "site/#"
    turns: int = 4              # of each sort


@dataclass(frozen=True)
class Reconnect:
    """The stream, in turns without and with clients that connect and go."""

    connects: int = 2_000       # a second
    at_once: int = 100          # handshakes under way, at most
    stay: int = 100             # connected at a time: when one more comes, the oldest goes
    turns: int = 4              # of each sort


@dataclass(frozen=True)
class Pauses:
    """One client waits for answers while another subscribes to all topics that the stream has passed over."""

    times: int = 10             # that the filter is subscribed to and given up, in the measured time
    filter: str = "#"
    passes: int = 2             # of the stream over its topics, before


@dataclass(frozen=True)
class Retained:
    """Messages are stored, one a topic; then subscriptions ask for some of them."""

    stored: int = 100_000
    filters: str = "shelf/{i}/+/value"
    per_filter: int = 100                       # topics that filter i matches: topics i * per_filter and on
    connections: int = 4                        # that ask, one subscription at a time each


@dataclass(frozen=True)
class Requests:
    """Each requester waits for its answer before it asks again; a responder sends the payload back."""

    requesters: int = 10
    responders: int = 2
    outstanding: int = 1                        # requests of one requester


@dataclass(frozen=True)
class Replay:
    """A recording, at the speed it was made, or another: docs/load-testing.md has the format."""

    file: str = "sample"                        # a path, or "sample", "market", "transit"
    speed: float = 1.0                          # 2: twice as fast; 0: as fast as the window lets it
    scale: int = 1                              # copies of it at once, each below a topic level of its own
    messages: int = 1_000_000                   # at most


KINDS: dict[str, type[Any]] = {
    "connects": Connects, "idle": Idle, "churn": Churn, "resubscribe": Resubscribe, "reconnect": Reconnect,
    "pauses": Pauses, "retained": Retained, "requests": Requests, "replay": Replay,
}  # fmt: skip

# What else of a scenario a kind looks at. Of a stream, and of those that disturb one, that is everything.
LOOKED_AT: dict[str, set[str]] = {
    "connects": set(), "idle": set(), "retained": {"payload_bytes"}, "requests": {"payload_bytes"},
    "replay": {"publishers", "subscribers", "window"},
}  # fmt: skip


def ignored(kind: str, fields: Iterable[str]) -> list[str]:
    """Those of a scenario's fields that a kind does not look at."""
    return [name for name in fields if kind in LOOKED_AT and name not in LOOKED_AT[kind]]


def options(kind: str, given: Mapping[str, Any]) -> Any:
    """The options of a kind, as its class; None of a stream. Raises ValueError."""
    if kind == STREAM:
        if given:
            raise ValueError(f"options {', '.join(given)}, and a stream has none")
        return None
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}; there are {', '.join([STREAM, *KINDS])}")
    fields = {field.name: field for field in dataclasses.fields(KINDS[kind])}
    values = {}
    for name, value in given.items():
        if name not in fields:
            raise ValueError(f"option {name} is unknown; {kind} has {', '.join(fields)}")
        values[name] = _value(name, value, fields[name].default)
    return KINDS[kind](**values)


def _value(name: str, value: Any, default: Any) -> Any:
    """The value in the type of its default; a command line has texts only."""
    wanted = type(default)
    try:
        made = wanted(value)
    except (TypeError, ValueError):
        made = None
    if made is None or isinstance(value, bool) or (wanted is str and not isinstance(value, str)):
        raise ValueError(f"option {name} is {value!r}; a value like {default!r} is wanted")
    least = 0 if name in ("speed", "changes") else 1
    if wanted is not str and made < least:
        raise ValueError(f"option {name} is {made}; at least {least}")
    return made
