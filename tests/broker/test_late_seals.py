"""What nobody waits for is sealed by one timer, and only if nothing that somebody waited for took it along."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from fanlight_broker.assembly import Settings
from fanlight_broker.core_part import Core
from fanlight_broker.storage.records import MARK
from fanlight_broker.storing import Storing


class HandClock(asyncio.SelectorEventLoop):
    """A loop whose clock the test moves."""

    hand = 0.0

    def time(self) -> float:
        return self.hand


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_acknowledgements_of_consumers_ride_with_what_publishers_wait_for(tmp_path: Path) -> None:
    loop = HandClock()

    async def run() -> None:
        settings = Settings(data=tmp_path)
        storing = Storing(settings, tmp_path, Core(settings), [])
        await storing.open()
        assert storing.store is not None
        store = storing.store
        sealed: Callable[[], int] = lambda: store.log.appended  # noqa: E731
        store.records.drop_copies(1, [1])  # nobody waits for it
        loop.hand = 0.004
        store.records.append(MARK, b"x")  # somebody does
        await turns()
        assert sealed() == 1
        store.records.drop_copies(1, [5])
        loop.hand = 0.0101  # the first timer goes off
        await turns()
        assert sealed() == 1, "an entry of acknowledgements alone, while publishers are at work"
        loop.hand = 0.0139
        await turns()
        assert sealed() == 1
        loop.hand = 0.0141
        await turns()
        assert sealed() == 2
        store.records.append(MARK, b"y")
        store.seal()  # before the turn is over, as a flush does
        store.records.drop_copies(1, [9])
        await turns()
        assert sealed() == 3, "the end of the turn has sealed what nobody waits for"
        loop.hand += 1.0
        await turns()
        assert sealed() == 4
        await storing.stop()

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
