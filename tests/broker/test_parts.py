"""The life of parts: the order in which they open, start and stop, what a failure leaves, and reloads in two phases."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.config import Exit, Settings
from fanlight_broker.parts import Apply, Part, PartError, Parts
from tests.captured_logs import capture_logs


class Noting(Part):
    """Notes what is done to it, and refuses or fails where the test says."""

    def __init__(self, name: str, acts: list[str], raises: dict[str, Exception] | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.acts = acts
        self.raises = raises or {}
        self.level = "old"

    def act(self, act: str) -> None:
        self.acts.append(f"{act} {self.name}")
        if act in self.raises:
            raise self.raises[act]

    async def open(self) -> None:
        self.act("open")

    async def start(self) -> None:
        self.act("start")

    async def stop(self) -> None:
        self.act("stop")

    async def prepare(self, settings: Settings) -> None:
        self.act("prepare")

    def reload(self, settings: Settings) -> Apply:
        self.act("check")

        def apply() -> None:
            self.act("apply")
            self.level = settings.log_level

        return apply


def three(**raises: dict[str, Exception]) -> tuple[list[str], list[Noting], Parts]:
    acts: list[str] = []
    made = [Noting(name, acts, raises.get(name)) for name in "abc"]
    return acts, made, Parts(made)


async def test_they_open_and_start_in_order_and_stop_in_reverse() -> None:
    acts, _, parts = three()
    await parts.open()
    await parts.start()
    await parts.stop()
    assert acts == ["open a", "open b", "open c", "start a", "start b", "start c", "stop c", "stop b", "stop a"]
    await parts.stop()
    assert len(acts) == 9


async def test_one_that_does_not_open_leaves_the_earlier_ones_stopped_in_reverse_order() -> None:
    acts, _, parts = three(c={"open": PartError("no disk: make one", Exit.UNAVAILABLE)})
    with pytest.raises(PartError, match=r"^c: no disk: make one$") as caught:
        await parts.open()
    assert (caught.value.part, caught.value.code) == ("c", Exit.UNAVAILABLE)
    assert acts == ["open a", "open b", "open c", "stop b", "stop a"]


async def test_one_that_does_not_start_is_stopped_with_the_others() -> None:
    acts, _, parts = three(b={"start": PartError("port in use")})
    await parts.open()
    with pytest.raises(PartError, match=r"^b: port in use$"):
        await parts.start()
    await parts.stop()
    assert acts[3:] == ["start a", "start b", "stop c", "stop b", "stop a"]


async def test_all_prepare_before_any_is_asked_to_reload() -> None:
    acts, _, parts = three()
    await parts.prepare(Settings())
    parts.reload(Settings())()
    assert acts == [f"{act} {name}" for act in ("prepare", "check", "apply") for name in "abc"]
    acts, _, parts = three(b={"prepare": PartError("no file: make one")})
    with pytest.raises(PartError, match=r"^b: no file: make one$"):
        await parts.prepare(Settings())
    assert acts == ["prepare a", "prepare b"]


async def whole_life(parts: Parts) -> None:
    await parts.open()
    try:
        await parts.start()
    finally:
        await parts.stop()


@pytest.mark.parametrize("act", ["open", "start", "stop"])
async def test_a_fault_is_logged_with_the_name_of_its_part(act: str) -> None:
    acts, _, parts = three(b={act: ZeroDivisionError("nothing left")})
    with capture_logs() as lines, pytest.raises(ZeroDivisionError):
        await whole_life(parts)
    (failed,) = (line for line in lines if line["event"] == "part_failed")
    assert (failed["part"], failed["act"], failed["log_level"]) == ("b", act, "error")
    assert acts[-1] == "stop a"


async def test_one_that_fails_to_stop_does_not_keep_the_others_from_stopping() -> None:
    acts, _, parts = three(b={"stop": OSError("b")}, a={"stop": OSError("a")})
    await parts.open()
    with pytest.raises(OSError, match=r"^b$"):
        await parts.stop()
    assert acts[3:] == ["stop c", "stop b", "stop a"]


def test_a_reload_is_checked_by_all_before_it_is_applied_by_any() -> None:
    acts, made, parts = three()
    apply = parts.reload(Settings())
    assert acts == ["check a", "check b", "check c"]
    assert {part.level for part in made} == {"old"}
    apply()
    assert acts[3:] == ["apply a", "apply b", "apply c"]
    assert {part.level for part in made} == {"info"}


@pytest.mark.parametrize("refusing", "abc")
def test_a_reload_that_one_refuses_changes_nothing_anywhere(refusing: str) -> None:
    acts, made, parts = three(**{refusing: {"check": PartError("users, line 1: is not user:hash")}})
    with pytest.raises(PartError, match=f"^{refusing}: users, line 1: is not user:hash$"):
        parts.reload(Settings())
    assert not [act for act in acts if act.startswith("apply")]
    assert {part.level for part in made} == {"old"}


class Draining(Noting):
    def __init__(self, name: str, acts: list[str], may_end: asyncio.Event) -> None:
        super().__init__(name, acts)
        self.draining = asyncio.Event()
        self.may_end = may_end

    async def drain(self, seconds: float) -> None:
        self.act("drain")
        self.draining.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.act("cut off")
            raise


@pytest.mark.parametrize("cancelled", [False, True])
async def test_they_drain_together_and_are_cut_off_together(cancelled: bool) -> None:
    acts: list[str] = []
    may_end = asyncio.Event()
    made = [Draining(name, acts, may_end) for name in "ab"]
    parts = Parts(made)
    await parts.open()
    drain = asyncio.ensure_future(parts.drain(1.0))
    await asyncio.gather(*(part.draining.wait() for part in made))
    assert not drain.done()
    if cancelled:
        drain.cancel()
    else:
        may_end.set()
    await asyncio.wait({drain})
    assert acts[2:] == ["drain a", "drain b"] + ["cut off a", "cut off b"] * cancelled


def part(**shows: Any) -> Part:
    """A part that shows this of itself."""
    return type("Shown", (Part,), {"name": "shown", **shows})()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("of", "shown", "without"),
    [
        (lambda parts: parts.ready, False, True),
        (lambda parts: parts.exit_code, Exit.UNWRITTEN, Exit.OK),
        (lambda parts: parts.metrics(), ["a source"], []),
    ],
    ids=["ready", "exit_code", "metrics"],
)
def test_what_one_shows_all_show(of: Callable[[Parts], object], shown: object, without: object) -> None:
    odd = part(ready=False, exit_code=Exit.UNWRITTEN, metrics=lambda self: ["a source"])
    assert of(Parts([part(), odd, part()])) == shown
    assert of(Parts([part(), part()])) == without


async def test_all_prepare_before_any_is_asked_and_one_may_refuse() -> None:
    acts, _, parts = three()
    await parts.prepare(Settings())
    assert acts == ["prepare a", "prepare b", "prepare c"]
    acts, _, parts = three(b={"prepare": PartError("no such file")})
    with pytest.raises(PartError, match="no such file") as refused:
        await parts.prepare(Settings())
    assert refused.value.part == "b"
    assert acts == ["prepare a", "prepare b"]
