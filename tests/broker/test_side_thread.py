"""What reads in a thread beside the loop: what it changes of the process meanwhile, and that it gives it back."""

import asyncio
import gc
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from threading import Event, Thread

import pytest

from fanlight_broker.parts import SWITCH_SECONDS, PartError, SideThread

Found = tuple[bool, bool]


def state() -> Found:
    """Does the garbage collector work, and is the interpreter handed over as seldom as ever?"""
    return gc.isenabled(), sys.getswitchinterval() > SWITCH_SECONDS * 1.01


def until(event: Event, begun: Event, pause: Callable[[], None]) -> Found:
    pause()
    begun.set()
    event.wait()
    return state()


async def test_two_files_that_are_read_at_the_same_time_leave_the_interpreter_as_it_was() -> None:
    """By two parts: it is one process, whoever reads."""
    before = gc.isenabled(), sys.getswitchinterval()
    ends, begun = [Event(), Event()], [Event(), Event()]
    reads = [partial(until, *each) for each in zip(ends, begun, strict=True)]
    reading = [asyncio.ensure_future(SideThread().read(each)) for each in reads]
    for each in begun:
        await asyncio.to_thread(each.wait)
    ends[0].set()
    assert await reading[0] == (False, False)
    assert state() == (False, False)  # the other one goes on
    ends[1].set()
    assert await reading[1] == (False, False)
    assert (gc.isenabled(), sys.getswitchinterval()) == before


async def test_what_fails_leaves_the_interpreter_as_it_was() -> None:
    before = gc.isenabled(), sys.getswitchinterval()

    def fails(pause: Callable[[], None]) -> None:
        raise ValueError("no file")

    with pytest.raises(ValueError, match="no file"):
        await SideThread().read(fails)
    assert (gc.isenabled(), sys.getswitchinterval()) == before


async def test_the_loop_ends_a_turn_between_two_pieces() -> None:
    turns, seen = 0, []

    def works(pause: Callable[[], None]) -> None:
        for _ in range(50):
            pause()
            seen.append(turns)

    reading = asyncio.ensure_future(SideThread().read(works))
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    await reading
    assert all(later > earlier for earlier, later in pairwise(seen))


@pytest.mark.parametrize("when", ["before", "while it waits"])
async def test_what_is_read_is_given_up_at_a_pause(when: str) -> None:
    side, begun = SideThread(), Event()

    def works(pause: Callable[[], None]) -> None:
        begun.set()
        while True:
            pause()

    if when == "before":
        side.stop()
    reading = asyncio.ensure_future(side.read(works))
    await asyncio.to_thread(begun.wait)
    side.stop()
    with pytest.raises(PartError, match="the broker stops"):
        await reading
    assert side.stopped()


def test_a_thread_does_not_wait_for_a_loop_that_has_gone() -> None:
    """Whether it is closed before the thread pauses, or does no turn more while it waits."""
    for closed_first in (True, False):
        side, loop, found = SideThread(), asyncio.new_event_loop(), []
        if closed_first:
            loop.close()

        def works(pause: Callable[[], None], found: list[str] = found) -> None:
            try:
                pause()
            except PartError as error:
                found.append(error.reason)

        thread = Thread(target=works, args=(partial(side._pause, loop, Event()),))
        thread.start()
        loop.close()
        thread.join()
        assert found == ["the broker stops"]
