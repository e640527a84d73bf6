"""Work that is put off: never in the middle of what puts it off."""

from collections.abc import Callable

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.ledger import Ledger
from tests.broker.core.parts import at_once

Soon = list[Callable[[], object]]


def test_what_is_put_off_runs_in_the_loops_next_turn_in_its_order() -> None:
    soon: Soon = []
    done: list[str] = []
    turns = Turns(Ledger(1024, lambda: None), soon.append)
    for name in ("first", "second"):
        turns.later(lambda name=name: done.append(name))  # type: ignore[misc]
    assert (done, len(turns), len(soon)) == ([], 2, 1)
    soon.pop()()
    assert (done, len(turns), soon) == (["first", "second"], 0, [])


@pytest.mark.parametrize("immediate", [False, True], ids=["a loop", "at once"])
def test_work_that_puts_off_its_rest_is_not_entered_again_before_it_is_left(immediate: bool) -> None:
    soon: Soon = []
    seen: list[str] = []
    turns = Turns(Ledger(1024, lambda: None), at_once if immediate else soon.append)

    def parse(left: int) -> None:
        seen.append(f"in {left}")
        if left:
            turns.later(lambda: parse(left - 1))
        seen.append(f"out {left}")

    turns.later(lambda: parse(2))
    while soon:
        soon.pop()()
    assert seen == ["in 2", "out 2", "in 1", "out 1", "in 0", "out 0"]


def test_a_broker_cannot_be_made_without_a_way_to_put_work_off() -> None:
    with pytest.raises(TypeError, match="next_turn"):
        Broker(Limits(), lambda: None)  # type: ignore[call-arg]
