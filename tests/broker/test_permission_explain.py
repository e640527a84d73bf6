"""/explain of topics that permissions deny to some: it says what routing does, and which rule is the reason."""

from typing import Any

import pytest

from tests.broker.core.parts import explained
from tests.broker.test_permission_paths import unless, world_of


def test_explain_leaves_out_who_may_not_read_a_topic() -> None:
    world = world_of(*unless(False, "subscribe", user="s"))
    reader, other = world.client("native", "s"), world.client("native")
    for each in (reader, other):
        each.subscribe("#")
        each.subscribe("#", where="n > 1")
    assert len(world.broker.router.matching(b"secret/a", "mqtt")) == 2
    assert len(world.broker.router.matching(b"open/a", "mqtt")) == 4


@pytest.mark.parametrize("fields", [None, {"n": 5}, {"n": 0}])
def test_explain_does_not_say_of_a_partly_denied_subscription_that_it_gets_a_message(
    fields: dict[str, Any] | None
) -> None:
    world = world_of(*unless(False, "subscribe", user="s"))
    reader, other = world.client("native", "s"), world.client("native", "o")
    for each in (reader, other):
        each.subscribe("#")
        each.subscribe("#", where="n > 1")
        each.subscribe("+/b")
    true = fields is None or fields["n"] > 1
    view = explained(world.broker, b"secret/a", "mqtt", "s", 100, fields)
    assert [row["client"] for row in view["matches"]] == ["o"] * (1 + true)
    assert view["total"] == 1 + true
    if fields is not None:
        assert [row["client"] for row in view["filtered"]] == ["o"] * (not true)
        assert view["filtered_total"] == (not true)
    assert (view["client"]["matching"], view["client"]["why_not_total"]) == (0, 3)
    reasons = sorted(row["reason"] for row in view["client"]["why_not"])
    assert reasons[:2] == ["a permission denies it to read secret/a: deny secret/#"] * 2
    assert "permission" not in reasons[2], "that the filter does not match is said first"
    view = explained(world.broker, b"open/a", "mqtt", "s", 100, fields)
    assert (view["total"], view["client"]["matching"]) == (2 * (1 + true), 1 + true)
