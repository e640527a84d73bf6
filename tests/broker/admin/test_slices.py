"""Views that are made in steps: some in each turn of the loop."""

import asyncio
from collections.abc import Generator

import pytest

from fanlight_broker.admin import slices
from fanlight_broker.admin.slices import SLICE_SECONDS, Slices


class Processor:
    """A clock that goes on with each step."""

    def __init__(self) -> None:
        self.used = 0.0

    def __call__(self) -> float:
        return self.used


def steps(count: int, each: float, processor: Processor, done: list[int]) -> Generator[None, None, str]:
    for number in range(count):
        processor.used += each
        done.append(number)
        yield
    return "made"


async def test_a_turn_has_the_steps_that_begin_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "REST", 0)
    processor, done = Processor(), list[int]()
    view = asyncio.create_task(Slices(processor).made(steps(20, SLICE_SECONDS / 4, processor, done)))
    seen = []
    while not view.done():
        await asyncio.sleep(0)
        seen.append(len(done))
    assert await view == "made"
    assert max(after - before for before, after in zip([0, *seen], seen, strict=False)) <= 4
    assert len(set(seen)) >= 5


async def test_a_turn_ends_before_a_step_that_would_take_it_past_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "REST", 0)
    processor, done = Processor(), list[int]()
    made = Slices(processor)
    assert await made.made(steps(20, 0.3 * SLICE_SECONDS, processor, done)) == "made"
    assert made.longest <= SLICE_SECONDS
    long = Slices(processor)
    assert await long.made(steps(3, 5 * SLICE_SECONDS, processor, done)) == "made"  # which cannot be divided
    assert long.longest == pytest.approx(5 * SLICE_SECONDS)


async def test_two_views_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "REST", 0)
    processor, done = Processor(), list[int]()
    made = Slices(processor)
    views = (steps(50, SLICE_SECONDS, processor, done), steps(3, SLICE_SECONDS, processor, done))
    assert await asyncio.gather(*map(made.made, views)) == ["made", "made"]
    assert done[:6] == [0, 0, 1, 1, 2, 2]


async def test_what_a_step_raises_is_raised_and_others_go_on() -> None:
    def failing() -> Generator[None, None, str]:
        yield
        raise ValueError("wrong")

    made = Slices()
    with pytest.raises(ValueError, match="wrong"):
        await made.made(failing())
    assert await made.made(steps(1, 0.0, Processor(), [])) == "made"
