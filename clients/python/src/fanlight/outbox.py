"""Frames waiting to be written, oldest first, and which of them outlive a connection.

Fire-and-forget messages do: they are kept while the client reconnects. Everything else (SUBSCRIBE, PING, a
publish that awaits a receipt) belongs to one connection: whoever awaits its answer gets
ConnectionLost and may repeat the call, so sending the frame again could do it twice.

The bound is in bytes and the callers observe it: `full` says that they have to wait. The protocol's own frames,
which are few and small, may exceed it.
"""


class Outbox:
    """`limit` in bytes."""

    __slots__ = ("_frames", "_transient", "limit", "messages_in", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0  # bytes waiting
        self.messages_in = 0  # fire-and-forget messages ever put in
        self._frames: list[bytes] = []
        self._transient: list[int] = []  # positions in _frames, ascending

    @property
    def full(self) -> bool:
        return self.size >= self.limit

    @property
    def messages(self) -> int:
        """Fire-and-forget messages waiting."""
        return len(self._frames) - len(self._transient)

    def put_message(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.size += len(frame)
        self.messages_in += 1

    def put_transient(self, frame: bytes) -> None:
        self._transient.append(len(self._frames))
        self._frames.append(frame)
        self.size += len(frame)

    def take(self, at_most: int) -> bytes:
        """Whole frames of about `at_most` bytes in all, at least one, joined; b"" when nothing waits."""
        if self.size <= at_most:
            joined = b"".join(self._frames)
            self.clear()
            return joined
        count = taken = 0
        while taken < at_most:
            taken += len(self._frames[count])
            count += 1
        joined = b"".join(self._frames[:count])
        del self._frames[:count]
        self._transient = [position - count for position in self._transient if position >= count]
        self.size -= taken
        return joined

    def drop_transient(self) -> None:
        """The connection is gone: only fire-and-forget messages stay."""
        for position in reversed(self._transient):
            self.size -= len(self._frames[position])
            del self._frames[position]
        self._transient.clear()

    def clear(self) -> None:
        self._frames.clear()
        self._transient.clear()
        self.size = 0
