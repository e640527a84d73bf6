"""decoders.toml: what is wrong with a file is said with the table and the key."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa: Any = pytest.importorskip("pyarrow")

GOOD = """
[[decoder]]
table = "quotes"
filter = "stock/+/+"
syntax = "mqtt"
format = "json"
words = { exchange = 2, ticker = -1 }
time = "at"
[decoder.fields]
at = { type = "timestamp", zone = "America/New_York", key = "date" }
price = "double"
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    from fanlight_spark.decoding.file import load
    from fanlight_spark.decoding.table import schema_of

    (tmp_path / "d.toml").write_text(GOOD, encoding="utf-8")
    decoder = load(tmp_path / "d.toml").one(None)
    assert (decoder.table, decoder.filter, decoder.syntax, decoder.time) == ("quotes", "stock/+/+", "mqtt", "at")
    assert (decoder.fields[0].key, decoder.fields[0].zone) == ("date", "America/New_York")
    assert schema_of(decoder).names == [
        "exchange", "ticker", "at", "price", "_topic", "_timestamp", "_offset", "_problem", "_value", "_drift",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[[decoder]]", "[decoder]", "made of tables [[decoder]]"),
        ("stock/+/+", "stock/#/+", "decoder quotes: .*'#'|decoder quotes: .*byte 6"),
        ('"json"', '"xml"', "format: 'xml' is none of json, msgpack"),
        ('"mqtt"', '"kafka"', "syntax: 'kafka' is none of amqp, mqtt"),
        ("time =", "tme =", "tme: there is no such key.*did you mean time"),
        ('time = "at"', 'time = "price"', "time: 'price' is no field of the type timestamp"),
        ("exchange = 2", "exchange = 0", "words.exchange: the number of a word"),
        ('"double"', '"dubble"', "fields.price: 'dubble' is no type"),
        ('"double"', '"array<double"', "fields.price: 'array<double' is no type: it ends"),
        ('"double"', '"binary"', "JSON has no binary"),
        ('"double"', '{ type = "double", unit = "s" }', "unit and zone are of a timestamp"),
        ('"double"', '{ type = "timestamp", unit = "h" }', "fields.price.unit: 'h' is none of s, ms"),
        ('"double"', '{ type = "double", optional = 1 }', "fields.price.optional: 1 is no bool"),
        ("America/New_York", "America/Nowhere", "'America/Nowhere' is no time zone"),
        ("America/New_York", "../../etc/passwd", "is no time zone"),
        ("price =", "_price =", "'_price' cannot be a name"),
        ("price =", "Ticker =", "ticker and Ticker would be one column"),
        ('key = "date"', 'key = "price"', "two of them have one key"),
        ("[decoder.fields]\n", "[decoder.other]\n", "other: there is no such key"),
        (GOOD, GOOD + GOOD, "there are two of this name"),
        (GOOD, "", "made of tables"),
    ],
)  # fmt: skip
def test_an_error_names_the_table_and_the_key(old: str, new: str, reason: str) -> None:
    from fanlight_spark.decoding.file import InvalidDecoders, parse

    with pytest.raises(InvalidDecoders, match=reason.replace("[", r"\[")):
        parse(GOOD.replace(old, new, 1))


def test_a_table_that_is_not_there_is_named_with_those_that_are() -> None:
    from fanlight_spark.decoding.file import parse

    two = parse(GOOD + GOOD.replace("quotes", "trades"))
    assert list(two) == ["quotes", "trades"]
    with pytest.raises(ValueError, match="quotes, trades: say which"):
        two.one(None)
    with pytest.raises(ValueError, match="no table 'x': it has quotes, trades"):
        two.one("x")


PLAIN = st.sampled_from(["boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
                         "decimal(10,2)"])  # fmt: skip
TYPE_TEXTS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        inner.map("array<{}>".format), inner.map("map<string, {}>".format),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: f"struct<{', '.join(f'f{number}: {kind}' for number, kind in enumerate(kinds))}>"
        ),
    ),
    max_leaves=5,
)  # fmt: skip


@given(TYPE_TEXTS)
def test_a_type_is_read_as_it_is_written(text: str) -> None:
    from fanlight_spark.decoding.type_names import text_of, type_of

    assert text_of(type_of(text)) == text
    assert type_of(text.upper().replace("F", "f").replace(" ", "")) is not None
