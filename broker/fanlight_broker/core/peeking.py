"""Peeking: the messages that wait in a queue, shown to an operator; they stay where they are.

Of a named queue, those on the disk are fetched into memory, as for a consumer. Of a session or a queue group, which has
nobody to fetch them for, they are only read.
"""

from collections.abc import Callable, Sequence
from functools import partial

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import in_memory, peek, read_soon
from fanlight_broker.wire.queue import Queue

Waiting = tuple[Message, int, float | None]  # deliveries so far, and when it came
Shown = Callable[[Sequence[Waiting], int], None]  # the oldest ones, and how many wait in all


def peek_named(home: Namespace, queue: WorkQueue, count: int, then: Shown) -> None:
    """Of a named queue: `then` is called with the `count` oldest, now or later."""
    inside = queue.inside

    def show() -> None:
        if home.queues.get(queue.name) is not queue:  # it has ended meanwhile
            then((), 0)
        else:
            then(peek(inside.queue, count), len(inside.queue))

    if in_memory(inside.queue) < min(count, len(inside.queue)):
        read_soon(inside, partial(home.turns.later, show))
    else:
        show()


def peek_waiting(home: Namespace, queue: Queue, count: int, then: Shown) -> None:
    """Of a session or a queue group."""
    head: list[Waiting] = [(message, 0, None) for message, _, _ in peek(queue, count)]
    total = len(queue)

    def show(rest: Sequence[Message]) -> None:
        then([*head, *((message, 0, None) for message in rest)], total)

    if len(head) < min(count, total):
        home.queues.journal.read_waiting(queue, count - len(head), show)
    else:
        show(())
