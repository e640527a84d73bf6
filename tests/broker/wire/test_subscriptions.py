"""The compiled table of a client's subscriptions against a dict."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.subscriptions import Subscriptions
from fanlight_broker.wire.target import Target

VARIANTS = Variants()
Key = tuple[bytes, str | None] | int


class Table(RuleBasedStateMachine):
    """Few keys, so that they meet, and enough of them that the table grows, shrinks and closes its holes."""

    @initialize(by_filter=st.booleans())
    def begin(self, by_filter: bool) -> None:
        self.outbox = Outbox(Ledger(1 << 20, lambda: None), 1 << 20, "drop_newest")
        self.groups = {name: QueueGroup(name) for name in ("g", "h")}
        self.by_filter = by_filter
        self.table = Subscriptions(by_filter)
        self.model: dict[Key, Target] = {}

    def key(self, nth: int, group: str | None) -> Key:
        return (b"f%d" % nth, group) if self.by_filter else nth

    def found(self, nth: int, group: str | None) -> Target | None:
        return self.table.find(b"f%d" % nth, group) if self.by_filter else self.table.numbered(nth)

    @rule(numbers=st.lists(st.integers(0, 60), min_size=1, max_size=30), group=st.sampled_from([None, "g", "h"]))
    def add(self, numbers: list[int], group: str | None) -> None:
        for nth in numbers:
            target = Target(self.outbox, VARIANTS.of(FORMAT), nth, b"f%d" % nth)
            if group is not None:
                self.groups[group].add(target)
            if self.key(nth, group) in self.model:
                with pytest.raises(ValueError, match="there is a subscription"):
                    self.table.add(target)
                continue
            self.table.add(target)
            self.model[self.key(nth, group)] = target

    @rule(numbers=st.lists(st.integers(0, 60), min_size=1, max_size=30), group=st.sampled_from([None, "g", "h"]))
    def remove(self, numbers: list[int], group: str | None) -> None:
        for nth in numbers:
            target = self.model.pop(self.key(nth, group), None)
            if target is not None:
                assert target in self.table
                self.table.remove(target)
                assert target not in self.table

    @rule(nth=st.integers(0, 60), group=st.sampled_from([None, "g", "h"]))
    def remove_what_is_not_there(self, nth: int, group: str | None) -> None:
        """One with the same key is not the same one."""
        target = Target(self.outbox, VARIANTS.of(FORMAT), nth, b"f%d" % nth)
        assert target not in self.table
        with pytest.raises(KeyError):
            self.table.remove(target)

    @invariant()
    def it_holds_what_the_dict_holds(self) -> None:
        assert len(self.table) == len(self.model)
        assert {id(target) for target in self.table} == {id(target) for target in self.model.values()}
        for nth in range(61):
            for group in (None, "g", "h"):
                assert self.found(nth, group) is self.model.get(self.key(nth, group))

    def teardown(self) -> None:
        if hasattr(self, "table"):
            left = {id(target) for target in self.model.values()}
            while (target := self.table.any_left()) is not None:
                left.remove(id(target))
                self.table.remove(target)
            assert not left


Table.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTableAgainstADict = Table.TestCase


def target(number: int, **options: Any) -> Target:
    outbox = Outbox(Ledger(1 << 20, lambda: None), 1 << 20, "drop_newest")
    return Target(outbox, VARIANTS.of(FORMAT), number, b"f", **options)


def test_a_table_that_changes_is_not_iterated_any_further() -> None:
    table = Subscriptions(by_filter=False)
    for number in range(10):
        table.add(target(number))
    each = iter(table)
    table.remove(next(each))
    with pytest.raises(RuntimeError, match="changed"):
        next(each)


def test_a_table_is_asked_by_the_key_that_it_has() -> None:
    with pytest.raises(TypeError, match="by number"):
        Subscriptions(by_filter=False).find(b"f", None)
    with pytest.raises(TypeError, match="by filter"):
        Subscriptions(by_filter=True).numbered(1)


@pytest.mark.parametrize("number", [0, 1, 0xFFFF_FFFF])
def test_every_number_of_the_wire_is_found(number: int) -> None:
    table = Subscriptions(by_filter=False)
    table.add(target(number))
    found = table.numbered(number)
    assert found is not None
    assert found.number == number
