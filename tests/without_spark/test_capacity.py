"""How far brokers reach, beside arithmetic by hand and a plain simulation."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_spark.capacity import (
    NODES_MAX,
    Costs,
    CostsError,
    Load,
    Node,
    bounds,
    costs_of,
    memory_of,
    nodes_needed,
    over_time,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def row(copies: float, payload: int, micros: float, kind: str = "stream") -> dict[str, Any]:
    return {
        "published": 1000, "delivered": 1000 * copies, "broker_us_per_publish": micros,
        "parameters": {"kind": kind, "payload_bytes": payload},
    }  # fmt: skip


def at(second: int, messages: float, copies: float = 0.0, size: float = 0.0) -> Load:
    return Load(START + second * SECOND, messages, messages * size, copies, copies * size)


def test_costs_come_out_of_rows_that_were_made_of_them() -> None:
    rows = [row(copies, size, 5 + 0.2 * copies + 0.001 * size * (1 + copies))
            for copies, size in ((1, 64), (100, 64), (10, 65_536), (2, 1000))]  # fmt: skip
    costs = costs_of({"results": [*rows, row(1, 64, 900, kind="idle")]})
    assert [each * 1e6 for each in costs[:3]] == pytest.approx([5, 0.2, 0.001])
    assert costs.error == pytest.approx(0, abs=1e-9)


def test_no_cost_is_below_zero() -> None:
    # A second copy makes it cheaper: nonsense, which noise can give.
    costs = costs_of({"results": [row(1, 64, 10), row(100, 64, 5), row(10, 65_536, 900)]})
    assert min(costs[:3]) == 0
    assert costs.error > 0.1


@pytest.mark.parametrize("report", [[], {}, {"results": [row(1, 64, 5)]}, {"results": [row(1, 64, 5)] * 3}])
def test_a_report_that_does_not_tell_is_refused_with_the_command_that_does(report: Any) -> None:
    with pytest.raises(CostsError, match="fanlight bench load pairs-unbatched fan-out large"):
        costs_of(report)


def test_what_is_not_done_in_an_interval_is_done_later() -> None:
    costs = Costs(0.001, 0, 0)
    load = [at(0, 500), at(1, 2500), at(2, 500), at(9, 100)]
    points = over_time(load, costs, SECOND)
    assert [point.busy for point in points] == pytest.approx([0.5, 2.5, 0.5, 0.1])
    assert [point.behind for point in points] == pytest.approx([0, 1.5, 1.0, 0])  # six idle seconds before the last
    found = bounds(points, Node(busy=0.8, behind=1.0))
    assert [(each.what, each.first) for each in found] == [("processor", START + SECOND), ("delay", START + SECOND)]
    assert [each.most for each in found] == pytest.approx([2.5, 1.5])
    assert bounds(over_time(load, costs, SECOND, nodes=4), Node()) == []


def test_bits_disk_and_memory_are_bounds() -> None:
    points = over_time([at(0, 10, 100, 1000), at(1, 10, 100, 1000)], Costs(0, 0, 0), SECOND, scale=2)
    assert [(point.bits, point.stored) for point in points] == [(1_600_000, 20_000), (1_600_000, 40_000)]
    found = bounds(points, Node(bits=1e6, memory=100, disk=30_000), memory=101)
    assert [(each.what, each.first) for each in found] == [
        ("memory", None), ("network", START), ("disk", START + SECOND)
    ]  # fmt: skip
    with pytest.raises(CostsError, match="fanlight_bench sizing"):
        memory_of({}, 1, 1)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 5000), min_size=1, max_size=12).map(dict.items),
    st.sampled_from([1.0, 7.0, 100.0]),
)
def test_the_fewest_nodes_are_found(given: Collection[tuple[int, int]], scale: float) -> None:
    load, costs, node = [at(*each) for each in sorted(given)], Costs(0.0004, 0, 0), Node(busy=0.8, behind=0.5)
    needed = nodes_needed(load, costs, SECOND, scale, node, None, (0, 0))

    def enough(nodes: int, slack: float) -> bool:
        """Second by second. slack: of what is rounded otherwise here."""
        messages, left = {each.begin: each.messages for each in load}, 0.0
        for second in range(31):
            work = messages.get(START + second * SECOND, 0.0) * scale / nodes * costs.message
            left = max(0.0, left + work - 1)
            if work > node.busy + slack or left > node.behind + slack:
                return False
        return True

    if needed is None:
        assert not enough(NODES_MAX, -1e-9)
    else:
        assert enough(needed, 1e-9)
        assert needed == 1 or not enough(needed - 1, -1e-9)


def test_what_no_number_of_nodes_can_do_has_none() -> None:
    assert nodes_needed([at(0, 10_000)], Costs(1, 0, 0), SECOND, 1, Node(), None, (0, 0)) is None
