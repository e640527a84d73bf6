"""A record index over 1,000,000 records, beside scans of their columns.

    count ...    how many records a selector is true of: the index, and numpy over the columns of the same run. The bar
                 is 0.3 of the scan
    count by     how many of each region, of those that are dear, beside numpy.bincount
    sum          of the prices of one region, beside the sum of the column
    freeze       all columns into the bytes of the index, ns a record

`bytes_per_record` of the index; `columns_bytes_per_record` of what the scan reads. An index keeps the program of
a text, so a question that is asked again is not parsed again.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy

from fanlight_bench.micro.case import Case, Effort, Group, timed
from matchcore.frozen_records import FrozenRecordIndex
from matchcore.record_columns import NumberColumn, TextColumn
from matchcore.records import ColumnOf, freeze_columns
from matchcore.selector import Attribute, Source

RECORDS, QUICK_RECORDS = 1_000_000, 20_000
REGIONS = 20
SYMBOLS = 5_000
PRICES = 100_000  # in hundredths
QUESTIONS = 20  # a turn


def groups(effort: Effort) -> Iterator[Group]:
    records = effort.sized(RECORDS, QUICK_RECORDS)
    random = numpy.random.default_rng(1)
    region = random.zipf(1.3, records).clip(1, REGIONS).astype(numpy.int32) - 1
    symbol = random.integers(0, SYMBOLS, records, dtype=numpy.int32)
    price = random.integers(0, PRICES, records) / 100
    columns = {
        attribute("region"): ColumnOf(texts=texts(region, REGIONS)),
        attribute("symbol"): ColumnOf(texts=texts(symbol, SYMBOLS)),
        attribute("price"): ColumnOf(numbers=NumberColumn(price, numpy.ones(records, bool))),
    }
    freeze = partial(freeze_columns, records, columns, is_complete=True)
    index = FrozenRecordIndex(freeze())
    questions: dict[str, tuple[str, Callable[[], object]]] = {
        "one region, dear": (
            "region = 'w3' AND price > 900", lambda: numpy.count_nonzero((region == 3) & (price > 900))
        ),
        "one symbol": ("symbol = 'w77'", lambda: numpy.count_nonzero(symbol == 77)),
        "price between": (
            "price BETWEEN 250 AND 300", lambda: numpy.count_nonzero((price >= 250) & (price <= 300))
        ),
        "not three regions": (
            "region NOT IN ('w1', 'w2', 'w3') OR price <= 1",
            lambda: numpy.count_nonzero(~((region == 1) | (region == 2) | (region == 3)) | (price <= 1)),
        ),
    }
    cases = []
    for name, (where, scan) in questions.items():
        assert index.count(where) == scan()
        cases += beside(f"count {name}", partial(index.count, where), scan)
    dear = "price > 900"
    cases += beside("count by", partial(index.count_by, "region", dear), lambda: numpy.bincount(region[price > 900]))
    cases += beside("sum", partial(index.sum, "price", "region = 'w3'"), lambda: price[region == 3].sum())
    cases.append(Case("freeze", records, partial(timed, freeze)))
    facts = {
        "records": records,
        "bytes_per_record": round(index.nbytes / records, 2),
        "columns_bytes_per_record": region.itemsize + symbol.itemsize + price.itemsize,
    }
    yield Group("records", cases, facts)


def beside(name: str, call: Callable[[], object], scan: Callable[[], object]) -> list[Case]:
    return [
        Case(f"{name}, scan", QUESTIONS, partial(timed, repeated, scan)),
        Case(name, QUESTIONS, partial(timed, repeated, call), (f"{name}, scan",)),
    ]


def repeated(call: Callable[[], object]) -> None:
    for _ in range(QUESTIONS):
        call()


def texts(codes: numpy.ndarray[tuple[int], numpy.dtype[numpy.int32]], count: int) -> TextColumn:
    return TextColumn(codes, [b"w%d" % number for number in range(count)])


def attribute(name: str) -> Attribute:
    return Attribute(Source.HEADER, (name,))
