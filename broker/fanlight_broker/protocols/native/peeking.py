"""QUEUE peek: the messages that wait in a queue, which stay there (section 3.10).

Of a named queue, those on the disk are fetched into memory, as for a consumer. Of a session or a queue group, which has
nobody to fetch them for, they are only read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fanlight_broker.core import errors
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import syntax_of
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.native.codec import PACKER
from fanlight_broker.protocols.native.fields import Fields, OptionMap
from fanlight_broker.protocols.native.shown import shown_message
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import in_memory, peek, read_soon
from fanlight_broker.wire.queue import Queue

PEEKED: Final = 10
PEEKED_MAX: Final = 200
PEEKED_BYTES: Final = 1_024  # of a payload

Answer = Callable[[Mapping[str, Any]], None]
Bounds = tuple[int, int]  # messages, and bytes of each payload
Waiting = tuple[Message, int, float | None]  # deliveries so far, and when it came


class Peeking:
    """room: bytes of an answer."""

    def __init__(self, broker: Namespace, room: Callable[[], int]) -> None:
        self._broker = broker
        self._room = room

    def bounds(self, arguments: OptionMap) -> Bounds:
        """What `arguments` ask for. Raises ProtocolViolation."""
        count, size = arguments.number("count"), arguments.number("payload_bytes")
        return (
            min(PEEKED if count is None else count, PEEKED_MAX),
            min(PEEKED_BYTES if size is None else size, self._room() // 2),
        )

    def _answer(self, waiting: Iterable[Waiting], size: int, total: int, answer: Answer) -> None:
        now, room = self._broker.ledger.now, self._room()
        shown: list[dict[str, Any]] = []
        for message, attempt, since in waiting:
            item = shown_message(message, size, self._room() // 2) | {
                "attempt": attempt, "seconds": None if since is None else max(0.0, now - since),
                "size": len(message.payload),
            }
            room -= len(PACKER.pack(item))
            if room < 0:
                break
            shown.append(item)
        answer({"messages": shown, "waiting": total})

    # -- named queues -------------------------------------------------------------------------------------------------

    def named(self, queue: WorkQueue, bounds: Bounds, answer: Answer) -> None:
        """Of a named queue."""
        count, size = bounds
        inside = queue.inside
        show = partial(self._show, queue, count, size, answer)
        if in_memory(inside.queue) < min(count, len(inside.queue)):
            read_soon(inside, partial(self._broker.turns.later, show))
        else:
            show()

    def _show(self, queue: WorkQueue, count: int, size: int, answer: Answer) -> None:
        if self._broker.queues.get(queue.name) is not queue:  # it has ended meanwhile
            answer({"messages": [], "waiting": 0})
        else:
            self._answer(peek(queue.inside.queue, count), size, len(queue.inside.queue), answer)

    # -- sessions and groups ------------------------------------------------------------------------------------------

    def other(self, client: Client, arguments: OptionMap, bounds: Bounds, answer: Answer) -> None:
        """Of a session or a queue group. Raises NotPermitted, NoSuchQueue."""
        for action in (Action.SUBSCRIBE, Action.QUEUE):
            self._broker.enforcement.check_filter(client.subscriber, action, b"#", "amqp", whole=True)
        queue = self._queue_of(arguments)
        count, size = bounds
        head: list[Waiting] = [(message, 0, None) for message, _, _ in peek(queue, count)]
        total = len(queue)

        def show(rest: Sequence[Message]) -> None:
            self._answer([*head, *((message, 0, None) for message in rest)], size, total, answer)

        if len(head) < min(count, total):
            self._broker.queues.journal.read_waiting(queue, count - len(head), show)
        else:
            show(())

    def _queue_of(self, arguments: OptionMap) -> Queue:
        name = arguments.text("session")
        if name is not None:
            session = self._broker.sessions.get(name)
            if session is None:
                raise errors.NoSuchQueue(name)
            return session.window.queue
        name = arguments.text("group") or ""
        fields = Fields("QUEUE peek", ["", *(arguments.array("filter"))])
        found = self._broker.router.group_queue(
            name, fields.topic(0, "filter"), syntax_of(fields.number_or_none(1, "syntax"))
        )
        if found is None:
            raise errors.NoSuchQueue(name)
        return found
