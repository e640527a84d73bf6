"""Times in payloads: zones, daylight saving, numbers since 1970; against Python's own datetime and zoneinfo."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa: Any = pytest.importorskip("pyarrow")

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]
LOCAL = st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1))
NEAR_A_CHANGE = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from([datetime(2018, 3, 11), datetime(2018, 11, 4), datetime(2018, 3, 25), datetime(2018, 10, 28),
                     datetime(2018, 4, 1), datetime(2018, 10, 7)]),
    st.integers(0, 300),
)  # fmt: skip
BEHIND = st.sampled_from(["", "Z", "+00:00", "+05:30", "-0330", "+01"])


def instants(texts: list[str | None], zone: str = "UTC") -> list[datetime | None]:
    from fanlight_spark.decoding.times import of_texts

    found: list[datetime | None] = of_texts(pa.array(texts, pa.string()), zone).to_pylist()
    return found


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.none() | st.tuples(LOCAL | NEAR_A_CHANGE, BEHIND, st.sampled_from("T ")), max_size=5),
    st.sampled_from(ZONES),
)  # fmt: skip
def test_iso_8601_is_the_instant_that_python_says(moments: list[Any], zone: str) -> None:
    texts = [each and each[0].isoformat(each[2]) + each[1] for each in moments]
    expected = []
    for text in texts:
        at = text and datetime.fromisoformat(text)
        expected.append(at and (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC))
    assert instants(texts, zone) == expected


def test_a_local_time_that_there_is_twice_is_the_earlier_and_one_that_there_is_not_is_later() -> None:
    texts: list[str | None] = ["2018-11-04T01:30", "2018-11-04T02:30", "2018-03-11T02:30", "2018-03-11T03:30"]
    assert instants(texts, "America/New_York") == [
        datetime(2018, 11, 4, 5, 30, tzinfo=UTC), datetime(2018, 11, 4, 7, 30, tzinfo=UTC),
        datetime(2018, 3, 11, 7, 30, tzinfo=UTC), datetime(2018, 3, 11, 7, 30, tzinfo=UTC),
    ]  # fmt: skip


def test_a_zone_in_the_text_counts_and_not_that_of_the_field() -> None:
    assert instants(["2018-07-01T10:00Z", "2018-07-01T10:00"], "America/New_York") == [
        datetime(2018, 7, 1, 10, tzinfo=UTC), datetime(2018, 7, 1, 14, tzinfo=UTC),
    ]  # fmt: skip


def test_digits_past_microseconds_are_cut_off() -> None:
    texts: list[str | None] = ["2018-01-02T03:04:05.123456789Z", "2018-01-02 03:04:05.1234567"]
    assert [at and at.microsecond for at in instants(texts)] == [123_456, 123_456]


@pytest.mark.parametrize(
    "text",
    ["", "20180102", "2018-13-01", "2018-01-02T24:00", "2018-01-02T10:00:60", "0000-01-01", "10000-01-01",
     "9999-12-31T23:59-01", "2018-01-02T10:00+25", "yesterday"],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert instants(["2018-01-02", text]) == [datetime(2018, 1, 2, tzinfo=UTC), None]


@pytest.mark.parametrize("number_of", [int, float])
@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_a_number_counts_its_unit_since_1970(unit: str, factor: int, number_of: Any) -> None:
    from fanlight_spark.decoding.times import of_numbers

    seconds = [0, -1, 1_520_000_000, 4_102_444_800]
    numbers = pa.array([*(number_of(second * factor) for second in seconds), None])
    assert of_numbers(numbers, unit).to_pylist() == [*(datetime.fromtimestamp(second, UTC) for second in seconds), None]


def test_fractions_are_rounded_to_microseconds_and_years_past_9999_are_none() -> None:
    from fanlight_spark.decoding.times import of_numbers

    found = of_numbers(pa.array([1.0000004, 1.5, 1e12, float("nan"), -1e12]), "s").cast(pa.int64()).to_pylist()
    assert found == [1_000_000, 1_500_000, None, None, None]
    assert of_numbers(pa.array([2**62, 253_402_300_800_000]), "ms").null_count == 2


def test_a_payload_says_its_time_in_the_units_of_its_field() -> None:
    from fanlight_spark.decoding.table import format_of
    from tests.without_spark.test_decoding import decoder_of

    fields = (
        'a = { type = "timestamp", unit = "s" }\nb = { type = "timestamp", unit = "ms" }\n'
        'c = { type = "timestamp", unit = "us" }\nd = { type = "timestamp", zone = "Europe/Berlin" }'
    )
    values = [
        b'{"a":1520000000.5,"b":1520000000500,"c":1520000000500000,"d":"2018-03-02T15:13:20.5"}',
        b'{"a":1520000000.5,"b":1520000000500,"c":1.5,"d":"2018-03-02"}',
        b'{"a":"1520000000","b":1,"c":1,"d":"2018-03-02"}', b'{"a":1e20,"b":1,"c":1,"d":"2018-03-02"}',
        b'{"a":1,"b":1,"c":1,"d":"2018-03-32"}', b'{"a":1,"b":1,"c":1,"d":5}',
    ]  # fmt: skip
    found = format_of(decoder_of("json", fields)).decode(pa.array(values, pa.binary()))
    assert {column.to_pylist()[0] for column in found.columns} == {datetime(2018, 3, 2, 14, 13, 20, 500_000, UTC)}
    assert found.problems.to_pylist() == [
        None, "c: 1.5 in place of whole us", "a: string in place of timestamp in s",
        "a: 1e+20 is out of range of timestamp", "d: '2018-03-32' is no time", "d: number in place of timestamp",
    ]  # fmt: skip
