"""Threads side by side, with an interpreter that changes between them all the time."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

SWITCH_SECONDS = 1e-5
NEVER_SECONDS = 1_000


@contextlib.contextmanager
def switching(seconds: float = SWITCH_SECONDS) -> Iterator[None]:
    """Threads change places every ten microseconds, or after this time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def gives_the_gil_away(call: Callable[[], object]) -> bool:
    """Whether another thread runs between the beginning and the end of a call, where nothing takes the GIL from it."""
    turns = [0]
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)  # gives the GIL away

    with switching(NEVER_SECONDS):
        counting = threading.Thread(target=count)
        counting.start()
        try:
            for _ in range(20):
                before = turns[0]
                call()
                if turns[0] > before + 1:
                    return True
        finally:
            done.set()
            counting.join()
    return False


def side_by_side(*works: Callable[[], object], problems: list[object]) -> None:
    """Run each on a thread of its own until all have ended. What they raise is put among the problems."""

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    with switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
