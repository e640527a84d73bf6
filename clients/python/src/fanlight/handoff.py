"""Fire-and-forget messages on their way from any thread to the loop's thread.

A thread trip for each would cost a hundred times what the message costs. So the caller's thread makes the
frame, and puts it here; the first one wakes the loop, which takes them all. What is called afterwards is
scheduled behind that, and so stays behind them. Whoever finds `BATCH_BYTES` waiting goes to the loop himself,
and waits there until the outbox has room: that is the bound.
"""

import asyncio
import threading
from typing import Any

from .codec import Encoder
from .frames import Headers
from .link import Link, State
from .marks import Mark
from .topics import Topic

BATCH_BYTES = 128 * 1024


class Handoff:
    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._lock = threading.Lock()
        self._encoder = Encoder()
        self._frames: list[bytes] = []
        self._size = 0

    def put(
        self, topic: Topic, payload: bytes, headers: Headers | None, syntax: int, reply: Topic | None,
        *, mark: Mark | None = None, options: dict[str, Any] | None = None,
    ) -> bool:  # fmt: skip
        """On any thread; the fields are taken as checked. True: the caller is to run `settle` on the loop.

        Raises FrameTooLarge, InvalidTopic; RuntimeError when the loop is closed.
        """
        with self._lock:
            self._encoder.frame_bytes = self._link.encoder.frame_bytes
            frame = self._encoder.publish(topic, payload, headers, syntax, reply, mark=mark, options=options)
            if not self._frames:
                self._loop.call_soon_threadsafe(self._take)
            self._frames.append(frame)
            self._size += len(frame)
            return self._size >= BATCH_BYTES

    @property
    def waiting(self) -> tuple[int, int]:
        """Messages and bytes put here and not taken yet."""
        with self._lock:
            return len(self._frames), self._size

    async def settle(self) -> None:
        """On the loop: hand everything to the outbox, and wait until that has room."""
        self._take()
        await self._link.room()

    def _take(self) -> None:
        with self._lock:
            frames, self._frames, self._size = self._frames, [], 0
        self._link.stats.published += len(frames)
        if self._link.state is State.CLOSED:  # since they were put here
            self._link.stats.unsent_lost += len(frames)
            return
        for frame in frames:
            self._link.post_message(frame)
