"""What waits in a queue, as an answer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from fanlight_broker.admin.api.declared import Call
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.admin.api.shown import ANSWER_BYTES, message_view, size_of
from fanlight_broker.core.peeking import Shown, Waiting

PEEK_SECONDS = 10.0  # for the disk


async def peeked(operated: Operated, call: Call, peek: Callable[[Shown], None]) -> dict[str, Any]:
    """The oldest messages of a queue. Raises ApiError: 503 if the disk does not answer."""
    found: asyncio.Future[tuple[Sequence[Waiting], int]] = asyncio.get_running_loop().create_future()

    def then(waiting: Sequence[Waiting], total: int) -> None:
        if not found.done():  # the caller may have given up
            found.set_result((waiting, total))

    with operated.acting():
        peek(then)
    try:
        async with asyncio.timeout(PEEK_SECONDS):
            waiting, total = await found
    except TimeoutError:
        raise ApiError(503, "the messages could not be read from the disk in time; try again") from None
    now, room, shown = operated.clock(), ANSWER_BYTES, list[dict[str, Any]]()
    for message, attempt, since in waiting:
        view = message_view(message, now, call["payload_bytes"])
        room -= size_of(view)
        if room < 0 and shown:
            break
        shown.append({
            **view, "attempt": attempt, "waited_seconds": None if since is None else max(0.0, round(now - since, 3)),
        })
        if len(shown) % 4 == 0:
            await asyncio.sleep(0)
    return {"items": shown, "total": total}
