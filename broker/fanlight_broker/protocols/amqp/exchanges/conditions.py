"""Conjunctions of conditions, indexed so that a message looks only at those that share something selective with it.

A condition is a name with a value, or a name alone (it is there). A conjunction with one condition is looked up. One
with several hangs under the condition that fewest others hang under, and is verified when a message meets that one; so
what all have in common (`kind = order`) is not what they hang under. Where more than CROWD hang under one condition,
they are a tree of their own, by a second condition, and so on.

    hung:   (id, 1) -> conjunction       (a, 7) -> [conjunction, ...]       (kind, k) -> ConditionTree
                                                                                          '- hung: (b, 1) -> ...

This is how matchcore's screens find selectors (access keys), and is not a screen for three reasons. A screen cannot
compare octets, decimals, arrays and tables, and takes a value of null for an absent one. It estimates what a condition
costs by the values of its attribute, as selectors of people share attributes: 10,000 bindings with a header name each
were verified in a row, 80 µs a message. And an `any` of which one part is common to all took 140 µs where that part is
false; here an `any` is as many conjunctions of one condition.
"""

from collections.abc import Sequence
from typing import Any, Final

from fanlight_broker.protocols.amqp.exchanges.bag import Held, pour, with_destination, without_destination
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search

CROWD: Final = 16  # verified in a row: some 2 µs
PRESENT: Final = ("V",)

Condition = tuple[str, Any]  # a name, and a comparable value or PRESENT
Conditions = tuple[Condition, ...]


class Conjunction:
    """Conditions, and the destinations of those bindings that have exactly these.

    path  the conditions under which it hangs, from the root
    """

    __slots__ = ("conditions", "held", "path")

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.held: Held = None
        self.path: Conditions = ()


class ConditionTree:
    """Conjunctions that have the conditions of a path in common.

    here   the one that has no other
    count  of conjunctions
    """

    __slots__ = ("count", "here", "hung")

    def __init__(self) -> None:
        self.hung: dict[Condition, Conjunction | list[Conjunction] | ConditionTree] = {}
        self.here: Conjunction | None = None
        self.count = 0

    def insert(self, conjunction: Conjunction) -> None:
        """path of the conjunction: that of this tree."""
        self.count += 1
        left = [each for each in conjunction.conditions if each not in conjunction.path]
        if not left:
            self.here = conjunction
            return
        condition = min(left, key=self._hanging)
        conjunction.path = (*conjunction.path, condition)
        branch = self.hung.get(condition)
        if branch is None:
            self.hung[condition] = conjunction
        elif isinstance(branch, Conjunction):
            self.hung[condition] = [branch, conjunction]
        elif isinstance(branch, ConditionTree):
            branch.insert(conjunction)
        elif len(branch) < CROWD:
            branch.append(conjunction)
        else:
            tree = self.hung[condition] = ConditionTree()
            for each in (*branch, conjunction):
                tree.insert(each)

    def _hanging(self, condition: Condition) -> int:
        branch = self.hung.get(condition)
        if branch is None:
            return 0
        if isinstance(branch, Conjunction):
            return 1
        return branch.count if isinstance(branch, ConditionTree) else len(branch)

    def remove(self, conjunction: Conjunction, depth: int = 0) -> None:
        """It is in this tree, which is at that depth of its path."""
        self.count -= 1
        if depth == len(conjunction.path):
            self.here = None
            return
        condition = conjunction.path[depth]
        branch = self.hung[condition]
        if isinstance(branch, list):
            branch.remove(conjunction)
            if len(branch) == 1:
                self.hung[condition] = branch[0]
        elif isinstance(branch, ConditionTree):
            branch.remove(conjunction, depth + 1)
            if not branch.count:
                del self.hung[condition]
        else:
            del self.hung[condition]

    def find(self, met: Sequence[Condition], all_met: set[Condition], search: Search) -> None:
        """Reach what all conditions of which are met."""
        if self.here is not None:
            pour(self.here.held, search)
        hung = self.hung
        # The shorter of the two: a message with many headers must not be walked through once for each small tree.
        asked = met if len(met) <= len(hung) else [condition for condition in hung if condition in all_met]
        for condition in asked:
            branch = hung.get(condition)
            if branch is None:
                continue
            if isinstance(branch, ConditionTree):
                branch.find(met, all_met, search)
            else:
                for each in (branch,) if isinstance(branch, Conjunction) else branch:
                    if all_met.issuperset(each.conditions):
                        pour(each.held, search)


class Conjunctions:
    """Destinations by conjunctions. Equal values of conditions are equal keys (arguments.comparable)."""

    __slots__ = ("_alone", "_always", "_names", "_several", "_tree")

    def __init__(self) -> None:
        self._always: Held = None
        self._alone: dict[Condition, Held] = {}
        self._several: dict[Conditions, Conjunction] = {}
        self._tree = ConditionTree()
        self._names: dict[str, int] = {}  # conditions that a name is there

    @property
    def is_empty(self) -> bool:
        """Nothing is left, trees and counts included."""
        tree = self._tree
        return not (self._always or self._alone or self._several or self._names or tree.hung or tree.here or tree.count)

    def add(self, conditions: Conditions, destination: Destination) -> None:
        """conditions: without repetition, always in the same order."""
        for condition in conditions:
            if condition[1] is PRESENT:
                self._names[condition[0]] = self._names.get(condition[0], 0) + 1
        if not conditions:
            self._always = with_destination(self._always, destination)
        elif len(conditions) == 1:
            self._alone[conditions[0]] = with_destination(self._alone.get(conditions[0]), destination)
        else:
            conjunction = self._several.get(conditions)
            if conjunction is None:
                conjunction = self._several[conditions] = Conjunction(conditions)
                self._tree.insert(conjunction)
            conjunction.held = with_destination(conjunction.held, destination)

    def remove(self, conditions: Conditions, destination: Destination) -> None:
        for condition in conditions:
            if condition[1] is PRESENT:
                self._names[condition[0]] -= 1
                if not self._names[condition[0]]:
                    del self._names[condition[0]]
        if not conditions:
            self._always = without_destination(self._always, destination)
        elif len(conditions) == 1:
            left = without_destination(self._alone[conditions[0]], destination)
            if left is None:
                del self._alone[conditions[0]]
            else:
                self._alone[conditions[0]] = left
        else:
            conjunction = self._several[conditions]
            conjunction.held = without_destination(conjunction.held, destination)
            if conjunction.held is None:
                del self._several[conditions]
                self._tree.remove(conjunction)

    def find(self, met: list[Condition], search: Search) -> None:
        """met: the values of the message, comparable ones; each name once. The list is used up."""
        if self._names:
            met += [(name, PRESENT) for name, _ in met if name in self._names]
        if self._always is not None:
            pour(self._always, search)
        alone = self._alone
        if alone:
            for condition in met:
                held = alone.get(condition)
                if held is not None:
                    pour(held, search)
        if self._several:
            self._tree.find(met, set(met), search)
