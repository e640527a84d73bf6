"""Redundant subscriptions: found by a pass in the background, shared by everybody who asks.

    asked --> the last pass is recent --------------------------------------> what it has found
          '-> a new pass, or the one that is under way goes on
                QUICK_SECONDS of the processor in the way of all lists, then SHARE of one, while somebody asks
                                                                             '-> what was found so far, and how far

A pass takes one client after the other. A filter can cover another one only if each word of it that is no wildcard is
a word of the other one, too. So the filters of a client are found by the rarest of their words, and a filter is
compared with those alone that are found by one of its own words, or have none.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import matchcore
from fanlight_broker import event_log
from fanlight_broker.admin.slices import REST, SLICE_SECONDS, Slices
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SEPARATORS, SYNTAXES

SHARE: Final = 0.01  # of the processor, in the long run; a page that is open may take 0.02
QUICK_SECONDS: Final = 0.2  # of the processor for each pass at first: some 20,000 subscriptions
ASKED_SECONDS: Final = 60.0  # a pass rests when nobody has asked for so long; a page asks at least so often
FORGOTTEN_SECONDS: Final = 600.0  # and it is given up, with what was found
KEPT_MAX: Final = 20_000  # pairs, some 100 bytes each, and what has ended meanwhile; others are only counted
COMPARED_MAX: Final = 200  # filters that one is compared with
COPIED: Final = 4_096  # subscriptions in one step
LOOK: Final = 32  # subscriptions between two looks at the clock, 2 to 10 µs each

Pair = tuple[Subscription, Subscription]  # one, and another one that makes it redundant
_log: Final = event_log.get("http")


@dataclass(slots=True)
class Survey:
    """What a pass has found, and how far it has come."""

    pairs: list[Pair]
    redundant: int = 0
    looked_at: int = 0
    complete: bool = False
    seconds: float = 0.0  # of the processor


class Redundancy:
    """subscriptions  all of them, each once, and None where a look at the clock is due
    clock             of times of day; processor: seconds that this thread has used
    """

    def __init__(
        self, subscriptions: Callable[[], Iterable[Subscription | None]], slices: Slices, clock: Callable[[], float],
        processor: Callable[[], float] = time.thread_time,
    ) -> None:
        self._subscriptions, self._slices, self._clock, self._processor = subscriptions, slices, clock, processor
        self._last: Survey | None = None
        self._present: Survey | None = None  # of the pass under way
        self._steps: Iterator[None] = iter(())
        self._began = self._asked = 0.0
        self._task: asyncio.Task[None] | None = None
        self._quick = asyncio.Event()  # nothing quick is to be expected of the pass any more
        self._forgetting: asyncio.TimerHandle | None = None

    async def found(self) -> Survey:
        """What is known now: the last whole pass, or as much as there is of the first one."""
        now = self._asked = self._clock()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(FORGOTTEN_SECONDS, self._forget)
        if self._present is None and (self._last is None or now - self._began >= self._last.seconds / SHARE):
            self._began = now
            self._present = Survey([])
            self._steps = passed_over(self._subscriptions(), self._present)
            self._quick.clear()
        if self._present is not None and self._task is None:
            self._task = asyncio.create_task(self._work(self._present))
        await self._quick.wait()
        known = self._last or self._present
        return known if known is not None else Survey([])  # it was forgotten meanwhile

    async def _work(self, present: Survey) -> None:
        try:
            while present is self._present and self._clock() - self._asked < ASKED_SECONDS:
                before = present.seconds
                await self._slices.made(self._some(present))
                if present.complete:
                    self._last, self._present = present, None
                    break
                if present.seconds >= QUICK_SECONDS:
                    self._quick.set()
                spent = present.seconds - before
                await asyncio.sleep(spent / SHARE if self._quick.is_set() else spent * REST)
        except Exception:
            _log.exception("redundant_subscriptions_failed")
            self._present = None  # whoever asks next begins again
        finally:
            self._task = None
            self._quick.set()

    def _some(self, present: Survey) -> Generator[None, None, None]:
        """A slice of the pass."""
        spent = 0.0
        while spent < SLICE_SECONDS and not present.complete:
            before = self._processor()
            try:
                next(self._steps)
            except StopIteration:
                present.complete = True
            spent += self._processor() - before
            yield
        present.seconds += spent

    def stop(self) -> None:
        """Ends the pass under way; what was found is forgotten."""
        if self._task is not None:
            self._task.cancel()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forget()

    def _forget(self) -> None:
        self._last = self._present = None
        self._steps = iter(())


def passed_over(subscriptions: Iterable[Subscription | None], found: Survey) -> Iterator[None]:
    """Look at all subscriptions, client by client, in steps; what is found is put into `found`."""
    seen = set[Subscriber]()
    for number, each in enumerate(subscriptions, 1):
        if each is not None and each.owner not in seen:
            seen.add(each.owner)
            yield from _of_owner(each.owner, found)
        if number % LOOK == 0 or each is None:
            yield


def _of_owner(owner: Subscriber, found: Survey) -> Iterator[None]:
    subscriptions = list[Subscription]()
    yield from _copied(owner, subscriptions)
    words = list[frozenset[bytes]]()
    numbers: Counter[bytes] = Counter()
    for at, each in enumerate(subscriptions, 1):
        words.append(literals(each.filter, SYNTAXES[each.syntax_number]))
        numbers.update(words[-1])
        if at % LOOK == 0:
            yield
    by_word: dict[bytes | None, list[Subscription]] = {}
    for at, each in enumerate(subscriptions, 1):
        rarest = min(words[at - 1], key=numbers.__getitem__, default=None)
        by_word.setdefault(rarest, []).append(each)
        if at % LOOK == 0:
            yield
    for at, each in enumerate(subscriptions, 1):
        found.looked_at += 1
        for compared, other in enumerate(islice(_candidates(by_word, words[at - 1]), COMPARED_MAX), 1):
            if makes_redundant(other, each):
                found.redundant += 1
                if len(found.pairs) < KEPT_MAX:
                    found.pairs.append((each, other))
                break
            if compared % LOOK == 0:
                yield
        if at % LOOK == 0:
            yield


def _copied(owner: Subscriber, subscriptions: list[Subscription]) -> Iterator[None]:
    """Fill a list with a client's subscriptions, in steps. It is begun again when they change, the third time at once.
    """
    for step in (COPIED, COPIED, None):
        subscriptions.clear()
        rows = iter(owner.subscriptions)
        with suppress(RuntimeError):  # they have changed
            while some := list(islice(rows, step)):
                subscriptions += some
                yield
            return


def _candidates(by_word: dict[bytes | None, list[Subscription]], words: Iterable[bytes]) -> Iterator[Subscription]:
    yield from by_word.get(None, ())
    for word in words:
        yield from by_word.get(word, ())


def literals(filter: bytes, syntax: str) -> frozenset[bytes]:
    """The words of a filter that are no wildcards."""
    return frozenset(filter.split(SEPARATORS[syntax])) - WILDCARDS[syntax]


WILDCARDS: Final[dict[str, frozenset[bytes]]] = {
    "amqp": frozenset((b"*", b"#")), "mqtt": frozenset((b"+", b"#")),
}


def makes_redundant(other: Subscription, subscription: Subscription) -> bool:
    """Does one get all messages of another one of the same client, as often and as safely? Of two that do, the earlier.
    """
    return gets_all_of(other, subscription) and (
        subscription.id > other.id or not gets_all_of(subscription, other)
    )


def gets_all_of(other: Subscription, subscription: Subscription) -> bool:
    if other is subscription or other.ended or subscription.ended:
        return False
    if other.group is not None or subscription.group is not None:
        return False
    if other.condition is not None and other.condition != subscription.condition:
        return False
    if other.variant.qos < subscription.variant.qos or (other.no_echo and not subscription.no_echo):
        return False
    try:
        return matchcore.covers(
            other.filter, subscription.filter, a_syntax=SYNTAXES[other.syntax_number],
            b_syntax=SYNTAXES[subscription.syntax_number],
        )
    except matchcore.InvalidFilter:
        return False  # of a queue, whose filter is no pattern


def progress_of(found: Survey, subscriptions: int) -> dict[str, Any]:
    """How far the pass is that an answer is from."""
    looked_at = found.looked_at if not found.complete else max(subscriptions, found.looked_at)
    return {
        "looked_at": looked_at, "of": max(subscriptions, looked_at), "redundant": found.redundant,
        "worked_seconds": round(found.seconds, 3),
    }
