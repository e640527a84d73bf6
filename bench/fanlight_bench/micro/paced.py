"""What rates cost: token buckets on the path of a message, none of which ever owes. No sockets: ns a message.

    publish    a native publish on a known route, read, fanned out and put into one outbox
    delivery   messages from one outbox to a transport that takes everything, all of a turn in one flush

    free       no rate
    paced      a rate of messages and one of bytes
    three      those of a client, a user and a group

Beside free: both others. The bar is 5 ns a message more, by difference.

`valgrind --tool=callgrind python -m fanlight_bench.micro.paced "publish paced" 20` runs one case for so many turns:
the difference of two runs has the instructions of a message.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.flush import IdleTransport
from fanlight_bench.micro.publish import MESSAGES, PublishSetup, same
from fanlight_broker.net.flush import SocketSink
from fanlight_broker.wire.token_bucket import BucketChain, TokenBucket

BUCKETS: Final = {"free": 0, "paced": 1, "three": 3}
ENOUGH: Final = 1e12  # a second


class TakingTransport(IdleTransport):
    """Takes everything, and forgets it."""

    def write(self, data: Any) -> None: ...


def buckets(count: int) -> BucketChain | None:
    found = None
    for _ in range(count):
        found = BucketChain(TokenBucket(ENOUGH, ENOUGH), found)
    return found


def publish(count: int) -> Callable[[], int]:
    setup = PublishSetup(1, same())
    setup.publisher.outbox.pace = buckets(count)
    return setup.turn


def delivery(count: int) -> Callable[[], int]:
    setup = PublishSetup(1, same())
    outbox = setup.connections[1].outbox
    sink = SocketSink(outbox, TakingTransport(), lambda outbox: None)
    outbox.delivery = buckets(count)

    def turn() -> int:
        setup.publisher.inbox.feed(next(setup.batches))
        setup.publisher.receive(0.0)
        spent = timed(sink.flush_now)
        if outbox.size:
            raise RuntimeError("an outbox that owes nothing was not flushed")
        for each in setup.broker.ledger.pop_dirty():
            each.clean()
        return spent

    return turn


CASES: Final[Mapping[str, Callable[[], Callable[[], int]]]] = {
    f"{way} {name}": (lambda make=make, count=count: make(count))  # type: ignore[misc]
    for way, make in (("publish", publish), ("delivery", delivery)) for name, count in BUCKETS.items()
}


def groups(effort: Effort) -> Iterator[Group]:
    for way in ("publish", "delivery"):
        yield Group(way, [
            Case(name, MESSAGES, make(), () if name == f"{way} free" else (f"{way} free",))
            for name, make in CASES.items() if name.startswith(way)
        ])


def main() -> None:
    name, turns = sys.argv[1], int(sys.argv[2])
    turn = CASES[name]()
    for _ in range(turns):
        turn()
    print(f"{turns * MESSAGES} messages")


if __name__ == "__main__":
    main()
