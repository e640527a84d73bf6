"""Permissions: who may publish on a topic, ns a decision, beside the same rules read from the top to the first.

    list        the rules one after another, in plain Python: conditions, action, then the words of the filter. It
                leaves nothing else in the processor's caches: what comes behind it, `permits`, is cold
    permits     ClassGrant.permits, from Python: what a route asks that has no decision yet
    index       what matchcore is asked for one decision, alone: one search for each party of the client
    decide      ClassGrant.decide: the same with the name of the rule, for who was refused and asks why
    filter      ClassGrant.decide_filter: may somebody subscribe to this filter?
    grant       PermissionTable.grant_of and release: the permission class of a client that comes
    reload      a file of these rules (CSV) read and made into a table, a rule of it, without the garbage collector, as
                the broker does it

`users`: each rule is for one of 1,000 users, and has a filter of its own. `devices`: each is for a user of its own.
`groups`: 50 groups with 2,000 filters each, some denied, and two rules with %u for everybody.
`bytes_per_rule` is what the interpreter and matchcore say, while nobody is there; `gap_ms` the longest processor time
between two pauses of a reload, `waits_ms` the longest wait of a loop that has little to do, while a thread reads the
file as the broker does: on a machine with other work that says little. `held_ms` is the most processor time of that
thread and of the loop's own, which collects garbage, during such a wait: what is left of a wait is the system's, which
gave the processors to others. `free_ms` is to let a table go.
"""

import asyncio
import gc
import random
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import clock_gettime, perf_counter, pthread_getcpuclockid, thread_time, thread_time_ns
from types import SimpleNamespace
from typing import Any, cast

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Action, Asker
from fanlight_broker.permitting.part import Permitting
from fanlight_permissions.class_grant import ClassGrant
from fanlight_permissions.permission_file import load
from fanlight_permissions.table import PermissionTable

LIMITS = Limits(permissions_max=10_000_000)
PUBLISH = Action.PUBLISH  # in CPython 3.11 a member that is looked up in its class is a call of Python's
REQUESTS = 1_000
LIST_REQUESTS = 20  # it takes a thousand times as long
SIZES = (10_000, 100_000)
HEADER = "effect,user,group,publish,subscribe\n"

Row = tuple[str, str, str, str, str]
Request = tuple[Asker, bytes]


def users(dice: random.Random, size: int) -> tuple[list[Row], list[Request]]:
    rows = [("allow", f"u{n % 1_000}", "", f"site/{n}/+/temp", "") for n in range(size)]
    asked = [dice.randrange(size) for _ in range(REQUESTS)]
    return rows, [(Asker(user=f"u{(n + n % 2) % 1_000}"), b"site/%d/7/temp" % n) for n in asked]


def devices(dice: random.Random, size: int) -> tuple[list[Row], list[Request]]:
    rows = [("allow", f"device{n}", "", f"site/{n}/#", "") for n in range(size)]
    asked = [dice.randrange(size) for _ in range(REQUESTS)]
    return rows, [(Asker(user=f"device{n}"), b"site/%d/temp" % (n + n % 2)) for n in asked]


def groups_of_users(dice: random.Random, size: int) -> tuple[list[Row], list[Request]]:
    rows: list[Row] = [("allow", "*", "", "home/%u/#", ""), ("deny", "*", "", "site/+/%u", "")]
    for n in range(size - 2):
        filter = f"site/{n // 50}/#" if n % 3 else f"site/{n // 50}/a"
        rows.append(("deny" if n % 10 == 0 else "allow", "", f"g{n % 50}", filter, ""))
    requests = []
    for _ in range(REQUESTS):
        own = frozenset(f"g{dice.randrange(50)}" for _ in range(2))
        requests.append((Asker(f"u{dice.randrange(1_000)}", own), b"site/%d/a" % dice.randrange(size // 25)))
    return rows, requests


WORKLOADS: dict[str, Callable[[random.Random, int], tuple[list[Row], list[Request]]]] = {
    "users": users, "devices": devices, "groups": groups_of_users,
}  # fmt: skip


def by_list(rows: Sequence[tuple[bool, str, str, list[str]]], requests: Sequence[Request]) -> list[bool]:
    found = []
    for asker, topic in requests:
        words = topic.decode().split("/")
        for allow, user, group, filter in rows:
            if user and user not in (asker.user, "*"):
                continue
            if group and group not in asker.groups:
                continue
            if _on(filter, words, asker.user):
                found.append(allow)
                break
        else:
            found.append(False)
    return found


def _on(filter: list[str], words: list[str], user: str) -> bool:
    for place, word in enumerate(filter):
        if word == "#":
            return True
        if place == len(words) or (word != "+" and (user if word == "%u" else word) != words[place]):
            return False
    return len(filter) == len(words)


def search(table: PermissionTable, asked: Sequence[bytes]) -> None:
    match = table.index.match
    for each in asked:
        match(each, syntax="mqtt")


def permits(asked: Sequence[tuple[ClassGrant, bytes]]) -> None:
    for grant, topic in asked:
        grant.permits(PUBLISH, topic, "mqtt")


def decide(asked: Sequence[tuple[ClassGrant, bytes]]) -> None:
    for grant, topic in asked:
        grant.decide(PUBLISH, topic, "mqtt")


def decide_filters(asked: Sequence[tuple[ClassGrant, bytes]]) -> None:
    for grant, filter in asked:
        grant.decide_filter(Action.PUBLISH, filter, "mqtt")


def classify(table: PermissionTable, askers: Sequence[Asker]) -> None:
    for asker in askers:
        table.release(table.grant_of(asker))


class Gaps:
    """Called as the pause of a reload: the longest processor time between two of them."""

    def __init__(self) -> None:
        self.longest = 0
        self._last = thread_time_ns()

    def __call__(self) -> None:
        now = thread_time_ns()
        self.longest = max(self.longest, now - self._last)
        self._last = now


def reload(path: Path) -> None:
    gc.disable()
    try:
        load(path, LIMITS)
    finally:
        gc.enable()


async def longest_waits(path: Path) -> tuple[float, float]:
    """Of a loop whose turns are short, while the file is read: the longest wait, and the most processor time that the
    reading thread and the loop's took during one, in seconds.
    """
    settings = cast(Any, SimpleNamespace(permissions=path, limits=LIMITS))
    part = Permitting(settings, cast(Any, SimpleNamespace(broker=None)))
    longest = held = 0.0
    await asyncio.to_thread(lambda: None)  # what begins the first thread is no part of a reload
    others = {each.ident for each in threading.enumerate()} - {threading.get_ident()}
    clocks = [pthread_getcpuclockid(each) for each in others if each is not None]
    reading = asyncio.ensure_future(part.prepare(settings))
    while not reading.done():
        begun, used = perf_counter(), sum(map(clock_gettime, clocks)) + thread_time()
        await asyncio.sleep(0)
        longest = max(longest, perf_counter() - begun)
        held = max(held, sum(map(clock_gettime, clocks)) + thread_time() - used)
    await reading
    return longest, held


def free_seconds(path: Path) -> float:
    tables = [load(path, LIMITS)]
    begun = thread_time_ns()
    tables.clear()
    return (thread_time_ns() - begun) / 1e9


def measure(title: str, size: int, folder: Path) -> Group:
    rows, requests = WORKLOADS[title](random.Random(17), size)
    path = folder / f"{title}-{size}.csv"
    path.write_text(HEADER + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    gc.collect()
    gc.disable()  # as the broker does while it reads a file
    gaps = Gaps()
    table = load(path, LIMITS, gaps)
    gc.enable()
    resting = table.nbytes
    asked = [(table.grant_of(asker), topic) for asker, topic in requests]
    plain = [(effect == "allow", user, group, filter.split("/")) for effect, user, group, filter, _ in rows]
    verdicts = [grant.decide(PUBLISH, topic, "mqtt").allowed for grant, topic in asked]
    permitted = [cast(ClassGrant, grant).permits(PUBLISH, topic, "mqtt") for grant, topic in asked]
    if verdicts[:LIST_REQUESTS] != by_list(plain, requests[:LIST_REQUESTS]) or verdicts != permitted:
        raise ValueError(f"{title}: the table decides otherwise than the list")
    searches = [
        each for grant, topic in asked if isinstance(grant, ClassGrant)
        for each in grant.searches(Action.PUBLISH, topic, "mqtt")
    ]
    filters = [(grant, topic.rpartition(b"/")[0] + b"/+") for grant, topic in asked]
    askers = [asker for asker, _ in requests]
    cases = [
        Case("list", LIST_REQUESTS, partial(timed, by_list, plain, requests[:LIST_REQUESTS])),
        Case("permits", len(asked), partial(timed, permits, asked), ("list", "index")),
        Case("index", len(asked), partial(timed, search, table, searches), ("list",)),
        Case("decide", len(asked), partial(timed, decide, asked), ("list", "permits")),
        Case("filter", len(filters), partial(timed, decide_filters, filters), ("decide",)),
        Case("grant", len(askers), partial(timed, classify, table, askers), ("decide",)),
        Case("reload", size, partial(timed, reload, path)),
    ]
    waits, held = asyncio.run(longest_waits(path))
    return Group(f"{size:,}, {title}", cases, {
        "rules": size, "parties": len(table.parties), "searches": round(len(searches) / len(asked), 1),
        "bytes_per_rule": round(resting / size), "gap_ms": round(gaps.longest / 1e6, 2),
        "waits_ms": round(waits * 1e3, 2), "held_ms": round(held * 1e3, 2),
        "free_ms": round(free_seconds(path) * 1e3, 2),
    })  # fmt: skip


def groups(effort: Effort) -> Iterator[Group]:
    sizes = (effort.size,) if effort.size else (500,) if effort.quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for title in WORKLOADS:
                yield measure(title, size, Path(folder))
