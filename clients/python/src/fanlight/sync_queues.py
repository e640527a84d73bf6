"""Named queues for operators, of the blocking client: `client.queues` as of the asyncio client."""

from .background import LoopThread
from .options import Where
from .queue import QueueOptions
from .queues import COUNT, PAYLOAD_BYTES, Filter, Moved, QueueInfo, QueueState, WaitingMessage
from .queues import Queues as AsyncQueues
from .topics import Syntax


class Queues:
    """`fanlight.sync.Client.queues`: as `fanlight.Client.queues`."""

    def __init__(self, thread: LoopThread, queues: AsyncQueues) -> None:
        self._thread = thread
        self._inner = queues

    def add(
        self, name: str, *filters: Filter, where: Where | None = None, options: QueueOptions | None = None,
        syntax: Syntax = "amqp", timeout: float | None = None,
    ) -> bool:
        """Declare a durable queue. Whether it is new."""
        return self._thread.run(
            self._inner.add(name, *filters, where=where, options=options, syntax=syntax, timeout=timeout)
        )

    def list(self, *, timeout: float | None = None) -> tuple[QueueState, ...]:
        """All queues that this client may see, by name."""
        return self._thread.run(self._inner.list(timeout=timeout))

    def info(self, name: str, *, timeout: float | None = None) -> QueueInfo:
        """All about a queue."""
        return self._thread.run(self._inner.info(name, timeout=timeout))

    def purge(self, name: str, *, timeout: float | None = None) -> int:
        """Drop the messages that wait. Returns how many."""
        return self._thread.run(self._inner.purge(name, timeout=timeout))

    def remove(
        self, name: str, *, if_empty: bool = False, force: bool = False, timeout: float | None = None
    ) -> int:
        """End a queue. Returns how many messages are lost."""
        return self._thread.run(self._inner.remove(name, if_empty=if_empty, force=force, timeout=timeout))

    def peek(
        self, name: str, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> tuple[WaitingMessage, ...]:
        """The first messages that wait, which stay where they are."""
        return self._thread.run(self._inner.peek(name, count, payload_bytes=payload_bytes, timeout=timeout))

    def peek_session(
        self, session: str, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> tuple[WaitingMessage, ...]:
        """What waits for an MQTT session."""
        return self._thread.run(
            self._inner.peek_session(session, count, payload_bytes=payload_bytes, timeout=timeout)
        )

    def peek_group(
        self, group: str, filter: Filter, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES,
        timeout: float | None = None,
    ) -> tuple[WaitingMessage, ...]:
        """What waits for the members of a shared subscription."""
        return self._thread.run(
            self._inner.peek_group(group, filter, count, payload_bytes=payload_bytes, timeout=timeout)
        )

    def move(
        self, name: str, to: str | None = None, *, count: int | None = None, timeout: float | None = None
    ) -> Moved:
        """Move the messages that wait to another queue, or back where they were published."""
        return self._thread.run(self._inner.move(name, to, count=count, timeout=timeout))
