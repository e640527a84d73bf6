"""A filter's column of the bitmap: all of its bits are set exactly if it matches."""

from hypothesis import example, given
from hypothesis import strategies as st

import matchcore
from matchcore import bits, why_not

WORDS = ("a", "b", "$c", "")


def test_the_rows_are_those_of_the_topic() -> None:
    assert bits("stock.*.AAPL", "amqp", "stock.nasdaq.MSFT", "amqp") == {
        "length 3": True, "left 0 'stock'": True, "left 2 'MSFT'": False,
    }
    assert bits("stock.#.close", "amqp", "stock.nasdaq", "amqp") == {
        "length 2": True, "left 0 'stock'": True, "right 0 'nasdaq'": False,
    }
    assert bits("#.b.#", "amqp", "a.c", "amqp") == {"length 2": True, "any 'b'": False}
    assert bits("#", "mqtt", "$SYS/uptime", "mqtt") == {"length 2": True, "root": False}
    assert bits("a.b", "amqp", "a", "amqp") == {"length 1": False, "left 0 'a'": True}


def filters(wildcards: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(WORDS[:3] + wildcards), min_size=1, max_size=6)


@given(filters(("*", "#")), st.lists(st.sampled_from(WORDS[:3]), min_size=1, max_size=6))
@example(["#", "a", "b", "#", "b", "#"], ["a", "b"])
def test_all_bits_are_set_exactly_if_an_amqp_filter_matches(words: list[str], topic: list[str]) -> None:
    filter, name = ".".join(words), ".".join(topic)
    assert all(bits(filter, "amqp", name, "amqp").values()) is (why_not(filter, "amqp", name, "amqp") is None)


@given(filters(("+",)), st.booleans(), st.lists(st.sampled_from(WORDS[:3]), min_size=1, max_size=6))
def test_all_bits_are_set_exactly_if_an_mqtt_filter_matches(words: list[str], many: bool, topic: list[str]) -> None:
    filter, name = "/".join([*words, "#"] if many else words), "/".join(topic)
    index = matchcore.FilterIndex()
    index.insert(filter, 1, syntax="mqtt")
    assert all(bits(filter, "mqtt", name, "mqtt").values()) is (index.match(name, syntax="mqtt") == (1,))
