"""The hash table of the buckets (lines.pxd), in the states that only coming and going brings about."""

import random

from matchcore import FilterIndex


def test_a_search_ends_though_every_line_has_passed_something_on() -> None:
    """Two lines of seven places: each was full once, and what it passed on is still there.

    The words are held all along, so that keys keep their ids and hence their lines. No topic and no insert that asks
    for a key which is not there may then look for it for ever.
    """
    dice = random.Random(1)
    words = [f"word{i}" for i in range(100)]
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    index.insert(".".join(words) + ".*", 0)
    held: list[str] = []
    for _ in range(20_000):
        if len(held) == 9:  # with the long one ten: as many as two lines take
            assert index.remove(held.pop(dice.randrange(9)) + ".*", 1)
        word = dice.choice(words)
        assert index.match(word + ".x") == ((1,) if word in held else ())
        if word not in held:
            assert index.insert(word + ".*", 1)
            held.append(word)
