"""Standard input as lines, without blocking the loop; standard output as lines, until nobody reads it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from ..errors import FrameTooLarge

CHUNK_BYTES = 64 * 1024


async def chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What can be read, as it comes, until the end."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except OSError:  # a file, or /dev/null: epoll refuses what never blocks
        while chunk := os.read(descriptor, CHUNK_BYTES):
            yield chunk
        return
    try:
        while True:
            await readable.wait()
            chunk = os.read(descriptor, CHUNK_BYTES)
            readable.clear()
            if not chunk:
                return
            yield chunk
    finally:
        loop.remove_reader(descriptor)


async def lines(descriptor: int, longest: int) -> AsyncIterator[list[bytes]]:
    """Lines without their ends, as many at a time as came together; a last one may lack its end.

    Raises FrameTooLarge for a line of more than `longest` bytes.
    """
    rest = b""
    async for chunk in chunks(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > longest:
            raise _too_large("a line", len(rest), longest)
        if whole:
            yield [line.removesuffix(b"\r") for line in whole]
    if rest:
        yield [rest.removesuffix(b"\r")]


async def whole(descriptor: int, longest: int) -> bytes:
    """All that can be read. Raises FrameTooLarge when it is more than `longest` bytes."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks(descriptor):
        parts.append(chunk)
        size += len(chunk)
        if size > longest:
            raise _too_large("a message", size, longest)
    return b"".join(parts)


def _too_large(what: str, size: int, longest: int) -> FrameTooLarge:
    return FrameTooLarge(
        f"{what} of more than {longest:,} bytes, which the broker does not take (its setting frame_bytes_max)",
        details={"size": size, "limit": longest},
    )


class Output:
    """Lines to standard output. Raises BrokenPipeError when its reader has gone."""

    def write(self, line: str, *, flush: bool) -> None:
        sys.stdout.write(line + "\n")
        if flush:
            sys.stdout.flush()

    def write_bytes(self, data: bytes, *, flush: bool = True) -> None:
        """Not to be mixed with `write` unless both flush."""
        sys.stdout.buffer.write(data)
        if flush:
            sys.stdout.buffer.flush()


def silence_stdout() -> None:
    """Nobody reads it any more: let the interpreter's own last flush go nowhere, instead of complaining."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
