"""What reads in a thread beside the loop: what it changes of the process meanwhile, and that it gives it back."""

import asyncio
import gc
import sys
from collections.abc import Callable
from functools import partial
from threading import Event

import pytest

from fanlight_broker.parts import SWITCH_SECONDS, SideThread

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
