"""A publish on a known route with permissions and without, no sockets: ns a publish.

    native, mqtt      one subscriber to everything; the others are beside these two
    ... permitted     the publisher's class has a bit in the route
    ... beyond        its class has a number beyond the bits: one of the few others that a route knows
    ... retained      MQTT with RETAIN, which is asked separately
    native asked      permissions that depend on the content: Python for each message

`valgrind --tool=callgrind python -m fanlight_bench.micro.permitted "native permitted" 20` runs one case for so many
turns: the difference of two runs has the instructions of a publish.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_bench.micro.exchanges import MESSAGES as EXCHANGED
from fanlight_bench.micro.exchanges import ROUNDS, ExchangeSetup
from fanlight_bench.micro.publish import MESSAGES, PublishSetup, same
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.permissions import ALL_ALLOWED, Action, Asker, FilterVerdict, Verdict
from fanlight_broker.protocols.mqtt.version import V3

BEYOND: Final = 1_000


class Permitted:
    """Everybody is of one class, and may do everything."""

    unrestricted = False
    attributes = ()

    def __init__(self, number: int = 0, *, by_content: bool = False) -> None:
        self.number = number
        self._verdict = Verdict(True, "all", by_content)

    def grant_of(self, asker: Asker) -> "Permitted":
        return self

    def namespace_of(self, asker: Any) -> str:
        return ""

    def release(self, grant: Any) -> None: ...

    def decide(
        self, action: Action, topic: bytes = b"", syntax: str = "", fields: Mapping[Any, object] | None = None
    ) -> Verdict:
        return self._verdict

    def permits(self, action: Action, topic: bytes, syntax: str) -> bool:
        return self._verdict.allowed and not self._verdict.by_content

    def decide_filter(self, action: Action, filter: bytes, syntax: str) -> FilterVerdict:
        return ALL_ALLOWED


def with_permissions(broker: Broker, permissions: Permitted | None) -> None:
    if permissions is not None:
        broker.use_permissions(permissions)


def native(permissions: Permitted | None = None) -> Callable[[], int]:
    setup = PublishSetup(1, same())
    with_permissions(setup.broker, permissions)
    return setup.turn


def mqtt(permissions: Permitted | None = None, *, retain: bool = False) -> Callable[[], int]:
    setup = ExchangeSetup(V3, retain=retain)
    with_permissions(setup.broker, permissions)
    return setup.turn


CASES: Final[Mapping[str, Callable[[], Callable[[], int]]]] = {
    "native": native,
    "native permitted": lambda: native(Permitted()),
    "native beyond": lambda: native(Permitted(BEYOND)),
    "native asked": lambda: native(Permitted(by_content=True)),
    "mqtt": mqtt,
    "mqtt permitted": lambda: mqtt(Permitted()),
    "mqtt retained": lambda: mqtt(retain=True),
    "mqtt retained permitted": lambda: mqtt(Permitted(), retain=True),
}
BESIDE: Final = {"native": "native", "mqtt": "mqtt", "mqtt retained permitted": "mqtt retained"}


def messages_of(name: str) -> int:
    """Of one turn."""
    return MESSAGES if name.startswith("native") else EXCHANGED * ROUNDS


def groups(effort: Effort) -> Iterator[Group]:
    cases = []
    for name, make in CASES.items():
        beside = BESIDE.get(name, name.partition(" ")[0])
        cases.append(Case(name, messages_of(name), make(), () if name == beside else (beside,)))
    yield Group("1 subscriber", cases)


def main() -> None:
    name, turns = sys.argv[1], int(sys.argv[2])
    turn = CASES[name]()
    for _ in range(turns):
        turn()
    print(f"{turns * messages_of(name)} publishes")


if __name__ == "__main__":
    main()
