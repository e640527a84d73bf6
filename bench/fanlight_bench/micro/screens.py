"""Selectors: which of those on a topic filter are true of a message, ns a message, each message once on its filter.

    screen       matchcore.Screen: access keys, a pool of bits, the rest in a row
    in a row     the same selectors, each verified by its program: what a broker does that evaluates one condition for
                 each matched subscription

The shared filters are those of docs/decisions/0016-selectors.md: two conditions each on 20 attributes of different
kinds, messages that have 14 of them. The adversarial ones are what access keys cannot help. Matching the topic and
decoding the message are not in it. `found` is how many ids a message finds, `bytes_per_selector` what the screens hold.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fanlight_bench.micro.case import Case, Effort, Group, timed
from matchcore.fields import Attributes, Fields
from matchcore.screen import Screen
from matchcore.selector import And, Attribute, Between, Compare, Like, Or, Present, Selector, Source, Test

SHARED = 54
MESSAGES = 216
CALL_NARROW = 20  # times in C for one call from Python, so that the call does not count where it would

TEXTS = [Attribute(Source.HEADER, (name,)) for name in ("region", "kind", "device", "site", "user", "status")]
NUMBERS = [
    Attribute(Source.PAYLOAD, (name,))
    for name in ("price", "volume", "load", "level", "speed", "age", "depth", "count", "rate", "size")
]
FLAGS = [Attribute(Source.HEADER, (name,)) for name in ("urgent", "test", "alarm", "last")]
KINDS = dict(zip(TEXTS, (8, 20, 5_000, 300, 2_000, 5), strict=True))


def condition(dice: random.Random) -> Test:
    """Of those that subscribers have: most are equal to a value, some are ranges."""
    kind = dice.random()
    if kind < 0.55:
        attribute = dice.choice(TEXTS)
        return Compare(attribute, "=", f"value {dice.randrange(KINDS[attribute])}")
    number = dice.choice(NUMBERS)
    if kind < 0.80:
        low = dice.uniform(0, 1_000)
        return Between(number, low, low + dice.choice((5, 50, 200)))
    if kind < 0.90:
        return Compare(number, dice.choice(("<", ">")), dice.uniform(0, 1_000))
    return Compare(dice.choice(FLAGS), "=", dice.random() < 0.5)


def two_conditions(dice: random.Random) -> Selector:
    return And((condition(dice), condition(dice)))


def half_wide(dice: random.Random) -> Selector:
    return Compare(dice.choice(NUMBERS), dice.choice(("<", ">")), dice.uniform(400, 600))


def unequal(dice: random.Random) -> Selector:
    attribute = dice.choice(TEXTS)
    return Compare(attribute, "<>", f"value {dice.randrange(KINDS[attribute])}")


def one_attribute(dice: random.Random) -> Selector:
    return Compare(TEXTS[2], "=", f"value {dice.randrange(5_000)}")


def inner_text(dice: random.Random) -> Selector:
    return Like(dice.choice(TEXTS), f"%{dice.randrange(10)}%{dice.randrange(10)}%")


def wide_or(dice: random.Random) -> Selector:
    return Or(tuple(condition(dice) for _ in range(64)))


ADVERSARIAL: dict[str, Callable[[random.Random], Selector]] = {
    "ranges half as wide as the values": half_wide,
    "all unequal": unequal,
    "one attribute": one_attribute,
    "LIKE '%a%b%'": inner_text,
    "64 tests joined by OR": wide_or,
    "presence": lambda dice: Present(dice.choice(TEXTS)),
}


def message(dice: random.Random, attributes: int = 14) -> dict[Attribute, object]:
    """As many of the 20 attributes."""
    fields: dict[Attribute, object] = {
        **{attribute: f"value {dice.randrange(kinds)}" for attribute, kinds in KINDS.items()},
        **{attribute: dice.uniform(0, 1_000) for attribute in NUMBERS},
        **{attribute: dice.random() < 0.5 for attribute in FLAGS},
    }
    return {attribute: fields[attribute] for attribute in dice.sample(sorted(fields, key=str), attributes)}


def ask(asked: Sequence[tuple[Screen, Fields]], times: int, in_a_row: bool) -> int:
    return sum(screen._ask(fields, times, in_a_row) for screen, fields in asked)


def fill(screens: Sequence[Screen], selectors: Sequence[Selector]) -> None:
    for id, selector in enumerate(selectors):
        screens[id % len(screens)].insert(id, selector)


def measure(title: str, count: int, filters: int, make: Callable[[random.Random], Selector]) -> Group:
    dice = random.Random(16)
    attributes = Attributes()
    screens = [Screen(attributes) for _ in range(filters)]
    empty = sum(screen.nbytes for screen in screens)
    selectors = [make(dice) for _ in range(count)]
    took = timed(fill, screens, selectors)
    asked = []
    for screen in dice.sample(screens, min(filters, MESSAGES)):
        for _ in range(max(1, MESSAGES // filters)):
            fields = Fields(attributes)
            fields.load(message(dice))
            asked.append((screen, fields))
    times = 1 if count > 16 * filters else CALL_NARROW
    found = ask(asked, times, False)
    if found != ask(asked, times, True):
        raise ValueError(f"{title}: the screen finds {found} ids, which is wrong")
    calls = len(asked) * times
    cases = [
        Case("in a row", calls, partial(timed, ask, asked, times, True)),
        Case("screen", calls, partial(timed, ask, asked, times, False), ("in a row",)),
    ]
    held = sum(screen.nbytes for screen in screens)
    in_a_row = sum(screen._shape()["row"] for screen in screens)
    in_pool = sum(screen._shape()["pool"] for screen in screens)
    facts = {
        "selectors": count, "filters": filters, "in_a_row": in_a_row, "in_pool": in_pool,
        "found": round(found / calls, 1), "insert_ns": round(took / count),
        "bytes_per_selector": round((held - (empty if filters < count else 0)) / count),
    }
    return Group(title, cases, facts)


def groups(effort: Effort) -> Iterator[Group]:
    count = effort.sized(100_000, 1_000)
    yield measure(f"{count:,} on {SHARED} filters", count, SHARED, two_conditions)
    narrow = min(count, 20_000)
    yield measure(f"{narrow:,}, one a filter", narrow, narrow, two_conditions)
    yield measure(f"{narrow:,}, five a filter", narrow, narrow // 5, two_conditions)
    few = min(count, 2_000)
    for title, make in ADVERSARIAL.items():
        yield measure(f"{few:,} on one filter: {title}", few // 10 if make is wide_or else few, 1, make)
