"""The hash table of the buckets (line_table.pxd), in the states that only coming and going brings about."""

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


def test_what_is_held_is_found_however_much_has_come_and_gone() -> None:
    """The sieve in front of the table keeps the bits of what has gone, and makes them anew now and then."""
    dice = random.Random(2)
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    held = [f"{i}.*" for i in range(500)]
    for filter in held:
        index.insert(filter, 1)
    size = index.nbytes
    for step in range(500, 20_500):
        place = dice.randrange(len(held))
        assert index.remove(held[place], 1)
        held[place] = f"{step}.*"
        assert index.insert(held[place], 1)
        if step % 500 == 0:
            assert all(index.match(filter) == (1,) for filter in held)
            assert not index.match_any(f"{step + 1}.x")
    assert index.nbytes < 2 * size
