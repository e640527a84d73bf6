"""The workloads: selectors on topic filters, and messages on topics, made anew from a fixed seed.

    shared NAME     54 filters; each message matches one of them
    rare NAME       the same filters, with a third condition: a text of 5,000 kinds, so that few selectors are true
    half NAME       half of the selectors on 54 filters, half on 9,000 narrow ones; a message matches one of each
    narrow NAME     one filter for each selector
    pass P          2,000 selectors on each of 10 filters: two ranges, each true of this share of the messages
    the others      what access keys, and most indexes of the literature, cannot use: 2,000 selectors on one filter

Selectors and messages are those of fanlight_bench.micro.screens: two conditions each on 20 attributes, of which 55 %
equal to a text (of 5 to 5,000 kinds), 25 % are ranges, 10 % have one bound and 10 % are booleans; messages have all.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fanlight_bench.micro import screens
from fanlight_bench.workloads import SEED
from fanlight_content.selections import Asked, Selections
from matchcore.selector import And, Attribute, Between, Selector

WIDE = 54
NARROW = 9_000
MESSAGES = 216
ATTRIBUTES = 20  # of a message
SELECTED, SELECTED_FILTERS = 2_000, 10
SHARES = (0.0001, 0.001, 0.01, 0.1, 0.5)
ADVERSARIAL = {
    "ranges 50 % wide": "ranges half as wide as the values",
    "all <>": "all unequal",
    "one attribute": "one attribute",
    "LIKE '%a%b%'": "LIKE '%a%b%'",
    "64 tests by OR": "64 tests joined by OR",
}
OF_ORS = 10  # times fewer selectors, of 64 tests each
SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1M": 1_000_000}

Message = dict[Attribute, object]
Pick = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ContentWorkload:
    """Selectors on slots (a number for each filter), and messages on those that match their topics."""

    name: str
    wide: int  # slots below it are one kind of filter: a message matches one of each kind at most
    held: list[tuple[int, Selector]]
    messages: list[tuple[tuple[int, ...], Message]]

    def compiled(self) -> Selections:
        """Raises what matchcore raises of a selector that it cannot hold."""
        selections = Selections(self.wide)
        for id, (slot, selector) in enumerate(self.held):
            selections.insert(slot, id, selector)
        return selections

    def asked(self, selections: Selections) -> list[Asked]:
        return [Asked(selections, slots, message) for slots, message in self.messages]


def names() -> list[str]:
    """All of them; sizes may be others than these."""
    made = [f"{kind} {size}" for kind in ("shared", "rare", "half", "narrow") for size in SIZES]
    return [*made, *(pass_name(share) for share in SHARES), *ADVERSARIAL]


def size_of(text: str) -> int:
    """100000, 100k or 1M. Raises ValueError."""
    if text in SIZES:
        return SIZES[text]
    digits = text.removesuffix("k")
    if not digits.isdecimal() or int(digits) == 0:
        raise ValueError(f"{text!r} is no number of selectors; 5000, 20k and 1M are")
    return int(digits) * (1_000 if text.endswith("k") else 1)


def make(name: str, times: float = 1.0) -> ContentWorkload:
    """The workload of that name, with `times` as many selectors. Raises ValueError."""
    dice = random.Random(SEED)
    if name in ADVERSARIAL:
        selector = screens.ADVERSARIAL[ADVERSARIAL[name]]
        count = SELECTED // (OF_ORS if selector is screens.wide_or else 1)
        return _made(name, dice, [(0, selector(dice)) for _ in range(int(count * times))], 1, 1)
    kind, _, size = name.partition(" ")
    if kind == "pass":
        share = _share_of(size)
        count = int(SELECTED * SELECTED_FILTERS * times)
        held = [(id % SELECTED_FILTERS, _two_ranges(dice, share)) for id in range(count)]
        return _made(name, dice, held, SELECTED_FILTERS, SELECTED_FILTERS)
    if kind not in ("shared", "rare", "half", "narrow"):
        raise ValueError(f"no workload {name!r}; there are {', '.join(names())}")
    count = int(size_of(size) * times)
    if kind == "narrow":
        return _made(name, dice, [(id, screens.two_conditions(dice)) for id in range(count)], 0, count)
    if kind == "rare":
        return _made(name, dice, [(id % WIDE, _rare(dice)) for id in range(count)], WIDE, WIDE)
    if kind == "shared":
        return _made(name, dice, [(id % WIDE, screens.two_conditions(dice)) for id in range(count)], WIDE, WIDE)
    slots = (id // 2 % WIDE if id % 2 else WIDE + id // 2 % NARROW for id in range(count))
    return _made(name, dice, [(slot, screens.two_conditions(dice)) for slot in slots], WIDE, WIDE + NARROW)


def pass_name(share: float) -> str:
    """The name of that workload."""
    return f"pass {100 * share:g}%"


def _rare(dice: random.Random) -> Selector:
    return And((screens.two_conditions(dice), screens.one_attribute(dice)))


def _share_of(text: str) -> float:
    """Of "0.5%". Raises ValueError."""
    digits = text.removesuffix("%")
    if not digits.replace(".", "", 1).isdecimal() or not 0 < float(digits) <= 100:
        raise ValueError(f"{text!r} is no share; 0.5% and 50% are")
    return float(digits) / 100


def _two_ranges(dice: random.Random, share: float) -> Selector:
    def one(attribute: Attribute) -> Between:
        low = dice.uniform(0, 1_000 * (1 - share))
        return Between(attribute, low, low + 1_000 * share)

    return And(tuple(one(attribute) for attribute in dice.sample(screens.NUMBERS, 2)))


def _made(name: str, dice: random.Random, held: list[tuple[int, Selector]], wide: int, slots: int) -> ContentWorkload:
    return ContentWorkload(name, wide, held, list(_messages(dice, wide, slots)))


def _messages(dice: random.Random, wide: int, slots: int) -> Iterator[tuple[tuple[int, ...], Message]]:
    """A message on one filter of each kind that there is."""
    for _ in range(MESSAGES):
        matched = [(0, wide)] * (wide > 0) + [(wide, slots)] * (slots > wide)
        yield tuple(dice.randrange(*kind) for kind in matched), screens.message(dice, ATTRIBUTES)
