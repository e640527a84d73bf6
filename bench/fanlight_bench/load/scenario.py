"""What is measured: a shape of load, read from a small file.

The harness's own are in the folder scenarios; a file of one's own is given by its path. How templates are written is in
spelling.py. Every key has a default but the ones above the line:

    title = "1 publisher, 100 subscribers"
    topic = "plant/line1/value"
    ---
    publishers, subscribers, topics = 1       topics are dealt out to the publishers, each of whom has one
    filters = [topic]                         subscriber j has filter j % n with index j // n, of n filters
    qos = 0                                   native: 1 asks for receipts; NATS has only 0
    payload_bytes = 64
    window = 20000                            deliveries outstanding, at most, over all connections
    batch = 32                                messages of one write
    eager = true                              false: after a batch of each publisher, wait until something comes
    inflight = 256                            QoS 1 and 2: of one publisher without their acknowledgement
    rate = 0                                  messages a second, for latency; 0: as fast as the window lets it
    idle = 0                                  further connections, which do nothing
    slow = 0                                  subscribers, the first ones, that read slow_bytes_per_second
    aliases = false                           MQTT 5: topics are sent once, and then their number
    retain = false                            MQTT: each message replaces the retained one of its topic
    [background]                              subscriptions beside those that are measured
    subscriptions, connections, filters
    where = "", met_by = {}                   a selector: below
    [headers]                                 of each message; MQTT 5: user properties. A text may have {i}, the topic's
    [properties]                              MQTT 5: of each message, to be found in each delivery
    content_type, response_topic, correlation_data, user = { unit = "C" }

A background subscription may have a selector, native or MQTT 5. Subscription j of the background has `where` with
index j, which must be true of a message if the message's headers are those of `met_by` with index j, and of no other:

    [headers]
    symbol = "s{i}"
    price = 120
    [background]
    where = "symbol = 's{i%100}' AND price > 100"
    met_by = { symbol = "s{i%100}" }

What is not one stream of messages says so, and has options of its own (kinds/__init__.py):

    kind = "churn"                            connects, idle, churn, resubscribe, reconnect, pauses, retained, requests,
                                              replay
    [options]
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanlight_bench.load import kinds, spelling

FOLDER = Path(__file__).parent / "scenarios"
PAYLOAD_BYTES_MIN = 21  # what the checks need: bench/fanlight_bench/load/streams.pxd
PROPERTIES = {"content_type", "response_topic", "correlation_data", "user"}


class BadScenario(ValueError):
    """A scenario that cannot be run."""


@dataclass(frozen=True)
class Background:
    """Subscriptions that are only there: dealt out to some connections, checked like the others."""

    subscriptions: int = 0
    connections: int = 4
    filters: tuple[str, ...] = ()
    where: str = ""
    met_by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """One shape of load: see above."""

    name: str
    title: str
    topic: str
    publishers: int = 1
    subscribers: int = 1
    topics: int = 1
    filters: tuple[str, ...] = ()
    qos: int = 0
    payload_bytes: int = 64
    window: int = 20_000
    batch: int = 32
    eager: bool = True
    inflight: int = 256
    rate: float = 0.0
    idle: int = 0
    slow: int = 0
    slow_bytes_per_second: float = 10_000.0
    aliases: bool = False
    retain: bool = False
    background: Background = Background()
    properties: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    kind: str = kinds.STREAM
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises BadScenario."""
        if not self.filters:
            object.__setattr__(self, "filters", (self.topic,))
        try:
            spelling.check(self.topic, topic=True)
            for template in (*self.filters, *self.background.filters):
                spelling.check(template, topic=False)
        except spelling.BadTemplate as error:
            raise BadScenario(f"{self.name}: {error}") from None
        least = {"publishers": 0, "subscribers": 0, "topics": 1, "batch": 1, "window": 1, "idle": 0, "inflight": 1}
        for name, bound in {**least, "payload_bytes": PAYLOAD_BYTES_MIN, "rate": 0, "slow": 0}.items():
            if getattr(self, name) < bound:
                raise BadScenario(f"{self.name}: {name} is {getattr(self, name)}; at least {bound}")
        if self.qos not in (0, 1, 2):
            raise BadScenario(f"{self.name}: qos {self.qos}; 0, 1 or 2")
        if self.slow > self.subscribers:
            raise BadScenario(f"{self.name}: {self.slow} slow subscribers of {self.subscribers}")
        if self.background.subscriptions and not (self.background.filters and self.background.connections > 0):
            raise BadScenario(f"{self.name}: background subscriptions need filters and connections")
        if unknown := set(self.background.met_by) - set(self.headers):
            raise BadScenario(f"{self.name}: background is met by {', '.join(sorted(unknown))}, which is no header")
        if self.background.met_by and not self.background.where:
            raise BadScenario(f"{self.name}: background has met_by, and no where")
        for template in (*self.headers.values(), *self.background.met_by.values(), self.background.where):
            if isinstance(template, str):
                try:
                    spelling.check_text(template)
                except spelling.BadTemplate as error:
                    raise BadScenario(f"{self.name}: {error}") from None
        if unknown := set(self.properties) - PROPERTIES:
            raise BadScenario(f"{self.name}: properties {', '.join(unknown)}; there are {', '.join(PROPERTIES)}")
        try:
            kinds.options(self.kind, self.options)
        except ValueError as error:
            raise BadScenario(f"{self.name}: {error}") from None
        if self.publishers and self.aliases and -(-self.topics // self.publishers) > 65_535:
            raise BadScenario(f"{self.name}: a publisher of more than 65,535 topics cannot have an alias for each")

    @property
    def choices(self) -> Any:
        """The options of its kind, with those that were left out."""
        return kinds.options(self.kind, self.options)

    @property
    def streams(self) -> int:
        """Sequences of messages: (publisher, topic) of stream s is (s % publishers, s % topics)."""
        return max(self.publishers, self.topics) if self.publishers else 0

    def with_changes(self, **changes: Any) -> "Scenario":
        """A scenario with some of its values changed; of its options, those that are given. Raises BadScenario."""
        options = {**self.options, **changes.pop("options", {})}
        return dataclasses.replace(self, **changes, options=options)


def names() -> list[str]:
    """The harness's own scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Scenario:
    """The scenario of this name, or of the file at this path. Raises BadScenario."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadScenario(f"no scenario {name}: there are {', '.join(names())}, and files that end in .toml") from None
    except OSError as error:
        raise BadScenario(f"{path}: {error.strerror}") from None
    return parse(path.stem, text)


def parse(name: str, text: str) -> Scenario:
    """The scenario that a file says. Raises BadScenario."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"{name}: {error}") from None
    background = _of(name, Background, given.pop("background", {}))
    scenario = _of(name, Scenario, {"name": name, **given, "background": background})
    assert isinstance(scenario, Scenario)
    return scenario


def as_json(scenario: Scenario) -> dict[str, Any]:
    """The scenario as values for JSON; `of_json` makes it again."""
    return dataclasses.asdict(scenario)


def of_json(values: dict[str, Any]) -> Scenario:
    """What `as_json` was made of. Raises BadScenario."""
    background = _of(values["name"], Background, values["background"])
    scenario = _of(values["name"], Scenario, {**values, "background": background})
    assert isinstance(scenario, Scenario)
    return scenario


def _of(name: str, made: type[Any], values: dict[str, Any]) -> Any:
    """The dataclass with these values, which must be of the types of its fields."""
    fields = {entry.name: entry for entry in dataclasses.fields(made)}
    for key, value in values.items():
        if key not in fields:
            raise BadScenario(f"{name}: {key} is unknown; there are {', '.join(fields)}")
        wanted = str(fields[key].type)
        right = {
            "<class 'int'>": isinstance(value, int) and not isinstance(value, bool),
            "<class 'float'>": isinstance(value, int | float) and not isinstance(value, bool),
            "<class 'bool'>": isinstance(value, bool),
            "<class 'str'>": isinstance(value, str),
            "tuple[str, ...]": isinstance(value, list | tuple) and all(isinstance(each, str) for each in value),
        }.get(wanted, True)
        if not right:
            raise BadScenario(f"{name}: {key} is {value!r}; a value like {fields[key].default!r} is wanted")
    try:
        return made(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    except TypeError as error:
        raise BadScenario(f"{name}: {error}") from None
