"""Rules: which of them wins, ns a decision, beside the plain ordered list that is read from the top to the first.

    first        matchcore.RuleIndex.first, from Python: a dict in, a Rule out
    first in C   its search alone, of fields that are loaded
    matches      the same search, for all rules that are true
    list         the same compiled rules one after another, the most salient first, up to the first that is true

The rules are those of an access list: user, group, action, path, hour; the last one, of the largest salience, has no
condition. `few`: some rules are true of a fact beside it; `many`: about one in a hundred. The adversarial ones are what
neither keys nor the order help. `looked_at` is how many rules the list looks at for a fact.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fanlight_bench.micro.case import Case, Effort, Group, timed
from matchcore.rules import RuleIndex

FACTS = 1_000
LIST_FACTS = 20  # it takes a hundred times as long
SIZES = (10_000, 100_000, 1_000_000)
ACTIONS = ("read", "write", "list", "share", "admin")

Fact = dict[str, object]
Made = tuple[str, Fact]


def few(dice: random.Random, size: int) -> Made:
    """A rule, and a fact: both of one distribution."""
    user, group, path = f"u{dice.randrange(size // 5)}", f"g{dice.randrange(200)}", f"/{dice.randrange(2_000)}/"
    action, hour = dice.choice(ACTIONS), dice.randrange(24)
    rule = dice.choice((
        f"user = '{user}' AND action = '{action}' AND path LIKE '{path}%'",
        f"user = '{user}' AND action IN ('{action}', 'list')",
        f"group = '{group}' AND path LIKE '{path}%' AND hour BETWEEN {hour} AND {hour + 4}",
        f"path LIKE '{path}%' AND group = '{group}' AND action <> '{action}'",
    ))  # fmt: skip
    return rule, {"user": user, "group": group, "path": f"{path}{hour}", "action": action, "hour": hour}


def many(dice: random.Random, size: int) -> Made:
    group, action, hour = f"g{dice.randrange(20)}", dice.choice(ACTIONS), dice.randrange(24)
    rule = dice.choice((
        f"group = '{group}' AND action = '{action}'", f"group = '{group}' AND hour >= {hour}",
        f"action = '{action}' AND hour = {hour}",
    ))  # fmt: skip
    return rule, {"user": f"u{dice.randrange(size)}", "group": group, "action": action, "hour": hour, "path": "/1/"}


def unequal(dice: random.Random, size: int) -> Made:
    """None has a key, and nearly none is true: `group` is absent."""
    rule = f"group <> 'g{dice.randrange(200)}' AND user <> 'u{dice.randrange(size)}'"
    return rule, {"user": f"u{dice.randrange(size)}", "action": dice.choice(ACTIONS)}


def one_key(dice: random.Random, size: int) -> Made:
    """All are under one key, and none is true: `path` is absent."""
    return f"action = 'read' AND path <> '{dice.randrange(size)}'", {"action": "read", "hour": 30}


def several_keys(dice: random.Random, size: int) -> Made:
    """Each under eight keys, in buckets that a fact finds all at once, and none is true."""
    tests = " OR ".join(f"a{dice.randrange(40)} = {dice.randrange(10)}" for _ in range(8))
    return f"({tests}) AND hour > 24", {f"a{i}": dice.randrange(10) for i in range(40)}


ADVERSARIAL: dict[str, Callable[[random.Random, int], Made]] = {
    "all unequal": unequal, "all under one key": one_key, "each under eight keys": several_keys,
}  # fmt: skip


def decide(index: RuleIndex, facts: Sequence[Fact]) -> None:
    for fact in facts:
        index.first(fact)


def measure(title: str, size: int, make: Callable[[random.Random, int], Made]) -> Group:
    dice = random.Random(16)
    index = RuleIndex()
    texts = [make(dice, size)[0] for _ in range(size - 1)]
    took = timed(lambda: [index.insert(text, salience=dice.randrange(size)) for text in texts])
    index.insert(salience=size)
    facts = [make(dice, size)[1] for _ in range(FACTS)]
    table, ordered = index._table, list(index)
    loaded, listed = table._loaded(facts), table._listed(ordered)
    some = loaded[:LIST_FACTS]
    winners = [rule.number for fact in facts[:LIST_FACTS] if (rule := index.first(fact)) is not None]
    if winners != table._ask_list(some, listed):
        raise ValueError(f"{title}: another rule wins than the first of the list")
    places = {rule.number: place for place, rule in enumerate(ordered, 1)}
    found = table._ask(loaded, False)
    cases = [
        Case("list", len(some), partial(timed, table._ask_list, some, listed)),
        Case("matches", len(facts), partial(timed, table._ask, loaded, False), ("list",)),
        Case("first in C", len(facts), partial(timed, table._ask, loaded, True), ("list", "matches")),
        Case("first", len(facts), partial(timed, decide, index, facts), ("list", "first in C")),
    ]
    seen = sum(places[number] for number in winners) / len(winners)
    return Group(title, cases, {
        "rules": size, "found": round(found / len(facts), 1), "looked_at": round(seen),
        "bytes_per_rule": round(index.nbytes / size), "insert_ns": round(took / size),
    })  # fmt: skip


def groups(effort: Effort) -> Iterator[Group]:
    sizes = (effort.size,) if effort.size else (500,) if effort.quick else SIZES
    for size in sizes:
        yield measure(f"{size:,}, few", size, few)
    for size in sizes[:2]:
        yield measure(f"{size:,}, many", size, many)
    few_rules = min(sizes[0], 2_000)
    for title, make in ADVERSARIAL.items():
        yield measure(f"{few_rules:,}: {title}", few_rules, make)
