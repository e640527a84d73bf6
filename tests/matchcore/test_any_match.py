"""match_any begins where a match is likely: in the block of columns with the most wildcards. It answers the same."""

import random

from matchcore import FilterIndex, freeze
from matchcore.reference import matches


def texts_of(count: int, dice: random.Random) -> list[str]:
    """Fewest wildcards first: the likely ones are in the last of several blocks of 512 columns."""
    made: dict[str, None] = {}
    while len(made) < count:
        made[".".join("*" if dice.random() < 0.5 else dice.choice("ab") for _ in range(10))] = None
    return sorted(made, key=lambda text: text.count("*"))


def test_the_first_match_is_found_wherever_it_is() -> None:
    dice = random.Random(1)
    texts = texts_of(2_600, dice)
    index = FilterIndex()
    index._tune(small=10_000)
    for id, text in enumerate(texts):
        index.insert(text, id)
    assert index._tiers()["pool"] > 2_500
    topics = [".".join(dice.choice("abx") for _ in range(dice.choice([9, 10, 10, 10]))) for _ in range(50)]
    held = dict(enumerate(texts))
    while held:
        for asked in (index, freeze(index)):
            for topic in topics:
                expected = any(matches(text, "amqp", topic, "amqp") for text in held.values())
                assert asked.match_any(topic) == expected == bool(asked.match(topic))
        # The likely block empties first, then others that took its place.
        for id in sorted(held, reverse=True)[:650]:
            index.remove(held.pop(id), id)
    assert not index.match_any(topics[0])
