"""QUEUE peek: the messages that wait in a queue, which stay there (section 3.10)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fanlight_broker.core import errors
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.peeking import Waiting, peek_named, peek_waiting
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import syntax_of
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.native.codec import PACKER
from fanlight_broker.protocols.native.fields import Fields, OptionMap
from fanlight_broker.protocols.native.shown import shown_message
from fanlight_broker.wire.queue import Queue

PEEKED: Final = 10
PEEKED_MAX: Final = 200
PEEKED_BYTES: Final = 1_024  # of a payload

Answer = Callable[[Mapping[str, Any]], None]
Bounds = tuple[int, int]  # messages, and bytes of each payload


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

    def _answer(self, size: int, answer: Answer, waiting: Sequence[Waiting], total: int) -> None:
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

    def named(self, queue: WorkQueue, bounds: Bounds, answer: Answer) -> None:
        """Of a named queue."""
        count, size = bounds
        peek_named(self._broker, queue, count, partial(self._answer, size, answer))

    def other(self, client: Client, arguments: OptionMap, bounds: Bounds, answer: Answer) -> None:
        """Of a session or a queue group. Raises NotPermitted, NoSuchQueue."""
        for action in (Action.SUBSCRIBE, Action.QUEUE):
            self._broker.enforcement.check_filter(client.subscriber, action, b"#", "amqp", whole=True)
        count, size = bounds
        peek_waiting(self._broker, self._queue_of(arguments), count, partial(self._answer, size, answer))

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
