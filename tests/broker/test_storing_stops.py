"""A store that is stopped while it reads messages from the disk."""

import asyncio
from pathlib import Path
from threading import Event

from fanlight_broker.assembly import Settings
from fanlight_broker.core_part import Core
from fanlight_broker.storing import Storing


async def test_what_is_read_during_a_stop_is_dropped_without_a_complaint(tmp_path: Path) -> None:
    complaints: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    settings = Settings(data=tmp_path)
    storing = Storing(settings, tmp_path, Core(settings), [])
    await storing.open()
    begun, release, taken = Event(), Event(), []

    def read() -> bool:
        begun.set()
        return release.wait()

    storing._read(read, taken.append)  # the thread is busy with it
    storing._read(read, taken.append)  # and this one waits
    await asyncio.to_thread(begun.wait)
    stop = loop.create_task(storing.stop())
    await asyncio.sleep(0)  # it has begun
    storing._read(read, taken.append)  # a client goes on while the store stops
    release.set()
    await stop
    assert taken == []
    assert complaints == []
