"""Threads side by side, with an interpreter that changes between them all the time."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

SWITCH_SECONDS = 1e-5
NEVER_SECONDS = 1_000


@contextlib.contextmanager
def switching() -> Iterator[None]:
    """Threads change places every ten microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def switching_never() -> Iterator[None]:
    """The GIL changes hands only where somebody gives it away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(NEVER_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


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
