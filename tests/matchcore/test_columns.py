"""Fields of many topics as columns: the answers are those of `match` row by row, and what is malformed is refused."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import FilterIndex
from matchcore.kleene import Untyped, attribute_of, key_of
from matchcore.reference import ReferenceFilterIndex
from matchcore.selector import Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import ATTRIBUTES, FOUND, SELECTORS
from tests.matchcore.switching import gives_the_gil_away, side_by_side

pa: Any = pytest.importorskip("pyarrow")

TOPICS = ["a.b", "", "b", "a.é", "$x.b"]
FILTERS = ["#", "a.*", "a.b"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


def rows_of(offsets: Any, ids: Any) -> list[tuple[int, ...]]:
    return [tuple(ids[offsets[i] : offsets[i + 1]].tolist()) for i in range(len(offsets) - 1)]


def values_of(kind: str) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        return st.integers(0 if kind[0] == "u" else -3, 3)
    if kind == "uint64":
        return st.sampled_from([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1])
    if kind.startswith("float"):
        return st.sampled_from([0.0, -0.0, 0.5, -1.0, 1.0, float("nan"), float("inf")])
    return st.booleans() if kind == "bool" else st.text("abé%", max_size=3)


TYPES: dict[str, Callable[[], Any]] = {
    **{kind: getattr(pa, kind) for kind in [*INTEGERS, "uint64", "float32", "float64"]},
    "bool": pa.bool_, "utf8": pa.utf8, "large_utf8": pa.large_utf8,
}  # fmt: skip


@st.composite
def columns(draw: st.DrawFn, rows: int) -> tuple[Any, list[Any]]:
    """A column of Arrow: of any type that is taken, from some row on, perhaps of a dictionary or in pieces."""
    kind = draw(st.sampled_from(sorted(TYPES)))
    start, behind = draw(st.integers(0, 9)), draw(st.integers(0, 2))
    count = start + rows + behind
    values = draw(st.lists(st.none() | values_of(kind), min_size=count, max_size=count))
    array = pa.array(values, TYPES[kind]())
    if kind != "bool" and draw(st.booleans()):
        width = draw(st.sampled_from([pa.int8(), pa.uint32()]))
        array = array.dictionary_encode().cast(pa.dictionary(width, array.type))
    array = array.slice(start, rows)
    if draw(st.booleans()):
        cut = draw(st.integers(0, rows))
        array = pa.chunked_array([array.slice(0, cut), array.slice(cut)], array.type)
    return array, array.to_pylist()


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_columns_of_arrow_are_what_their_rows_are(data: st.DataObject) -> None:
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    for id, selector in enumerate(data.draw(st.lists(SELECTORS, min_size=1, max_size=4))):
        where = parse_where(str(selector))
        for one in (index, oracle):
            one.insert(FILTERS[id % 3], id % 3, where=where)
    index.insert("a.*", 9)
    oracle.insert("a.*", 9)
    topics = data.draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=12))
    attributes = data.draw(st.lists(ATTRIBUTES, max_size=4, unique=True))
    names = [key for key in map(key_of, attributes) if isinstance(key, str)]
    made = {name: data.draw(columns(len(topics))) for name in names}
    fields: Any = {name: array for name, (array, _) in made.items()}
    if data.draw(st.booleans()):
        fields = pa.table(fields) if fields else pa.table({"unasked": pa.array([None] * len(topics))})
        if data.draw(st.booleans()):
            fields = fields.combine_chunks().to_batches()[0]
    rows = [{name: values[row] for name, (_, values) in made.items()} for row in range(len(topics))]
    found = rows_of(*index.match_many(topics, fields=fields))
    assert found == [index.match(topic, fields=row) for topic, row in zip(topics, rows, strict=True)]
    assert found == [oracle.match(topic, fields=row) for topic, row in zip(topics, rows, strict=True)]


@settings(deadline=None, max_examples=40)
@given(st.lists(SELECTORS, min_size=1, max_size=20), st.data())
def test_columns_of_python_are_what_their_rows_are(selectors: list[Selector], data: st.DataObject) -> None:
    index = FilterIndex()
    for id, selector in enumerate(selectors):
        index.insert("#", id, where=parse_where(str(selector)))
    attributes = data.draw(st.lists(ATTRIBUTES, max_size=4, unique=True))
    count = data.draw(st.integers(0, 6))
    made = {attribute: data.draw(st.lists(FOUND, min_size=count, max_size=count)) for attribute in attributes}
    rows = [{attribute: values[row] for attribute, values in made.items()} for row in range(count)]
    found = rows_of(*index.match_many(["a.b"] * count, fields=made))
    assert found == [index.match("a.b", fields=row) for row in rows]


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "<i4", "u8", "f2", "f4", "f8", ">i4", "O", "U3"])
def test_columns_of_numpy(kind: str) -> None:
    index = FilterIndex()
    for id, where in enumerate(["x = 1", "x = TRUE", "x = '1'", "x > 0.5", "x IS NOT NULL"]):
        index.insert("#", id, where=where)
    array = numpy.array([0, 1, 1, 0, 1], dtype=kind)[::-2]
    found = rows_of(*index.match_many(["t"] * 3, fields={"x": array}))
    assert found == [index.match("t", fields={"x": value}) for value in array.tolist()]


def test_words_of_the_topic_stand_over_columns_of_their_name() -> None:
    index = FilterIndex()
    index.insert("#", 1, where="$word[2] = 'b'")
    index.insert("#", 2, where="$words = 2")
    index.insert("#", 3, where="$word[2] IS NOT NULL")
    topics = [b"a.b", b"a", b"a.\xff", b"", "a.é".encode(), b"a..b"]
    fields = {"$word[2]": ["b"] * 6, "$words": [7] * 6}
    expected = [index.match(topic, fields={"$word[2]": "b", "$words": 7}) for topic in topics]
    assert expected == [(1, 2, 3), (1, 3), (2, 3), (1, 3), (2, 3), (3,)]
    assert rows_of(*index.match_many(topics, fields=fields)) == expected
    data, ends = b"".join(topics), numpy.cumsum([0, *map(len, topics)])
    assert rows_of(*index.match_many(data, offsets=ends, fields=fields)) == expected


def test_only_columns_that_a_selector_asks_for_are_looked_at() -> None:
    index = FilterIndex()
    index.insert("a", 1, where="price > 1")
    many = pa.record_batch({"price": [1, 2], "when": pa.array([1, 2], pa.timestamp("us", "UTC")), "list": [[1], None]})
    assert rows_of(*index.match_many(["a", "a"], fields=many)) == [(), (1,)]
    index.insert("b", 2, where="when > 1")
    with pytest.raises(TypeError, match="the column 'when' has type timestamp, which no selector compares: booleans"):
        index.match_many(["a", "a"], fields=many)


@pytest.mark.parametrize(
    ("array", "name"),
    [([b"x"], "binary"), ([[1]], "list"), ([{"a": 1}], "struct"), (pa.array([1], pa.date32()), "date"),
     (pa.array([1.0], pa.float16()), "float16"), (pa.array(["x"], pa.string_view()), "utf8 view"),
     (pa.array([[("a", 1)]], pa.map_(pa.utf8(), pa.int8())), "map"), (pa.array([b"ab"], pa.binary(2)), "fixed"),
     (pa.array([1], pa.decimal128(5, 2)), "decimal"), (pa.array([b"x"]).dictionary_encode(), "binary")],
)  # fmt: skip
def test_other_types_are_refused_by_name(array: Any, name: str) -> None:
    index = FilterIndex()
    index.insert("a", 1, where="x = 1")
    with pytest.raises(TypeError, match=f"the column 'x' has type {name}"):
        index.match_many(["a"], fields={"x": array if isinstance(array, pa.Array) else pa.array(array)})


@pytest.mark.parametrize(
    ("fields", "error", "reason"),
    [(pa.array([1]), TypeError, "not an array of int64"), (5, TypeError, "fields are columns: .* not int"),
     ({"x": "1"}, TypeError, "is one str"), ({"x": pa.array([1, 2])}, ValueError, "'x' has 2 values, and there are 1"),
     ({"x": 5}, TypeError, "not iterable"), (pa.array([None], pa.struct({"x": pa.int8()})), ValueError, "are null"),
     (pa.record_batch({"x": pa.array([], pa.int8())}), ValueError, "'x' has 0 values")],
)  # fmt: skip
def test_what_is_no_column_is_refused(fields: Any, error: type[Exception], reason: str) -> None:
    index = FilterIndex()
    index.insert("a", 1, where="x = 1")
    with pytest.raises(error, match=reason):
        index.match_many(["a"], fields=fields)
    assert rows_of(*index.match_many(["a"], fields={"x": [1]})) == [(1,)]


def test_a_slice_of_a_struct_array_is_a_record_batch_as_well() -> None:
    index = FilterIndex()
    index.insert("a", 1, where="x = 2")
    structs = pa.array([{"x": 1}, {"x": 2}, {"x": 3}]).slice(1, 1)
    assert rows_of(*index.match_many(["a"], fields=structs)) == [(1,)]


def test_nothing_of_arrow_is_held_afterwards() -> None:
    index = FilterIndex()
    index.insert("a", 1, where="x LIKE 'x%'")
    before = pa.total_allocated_bytes()
    table = pa.table({"x": pa.chunked_array([["x" * 1_000] * 50, [None] * 50])})
    assert pa.total_allocated_bytes() > before
    index.match_many(["a"] * 100, fields=table)
    index.match_many(["a"] * 100, fields={"x": table.column("x")})
    with pytest.raises(ValueError, match="100 values"):
        index.match_many(["a"], fields=table)
    del table
    assert pa.total_allocated_bytes() == before


# ---- malformed ---------------------------------------------------------------------------------------------


class CArray(ctypes.Structure):
    pass


CArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))), ("dictionary", ctypes.POINTER(CArray)),
    ("release", ctypes.c_void_p), ("private", ctypes.c_void_p),
]  # fmt: skip
ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Changed:
    """An array whose struct is changed before it is handed out."""

    def __init__(self, array: Any, change: Callable[[Any], None]) -> None:
        self.array, self.change = array, change

    def __arrow_c_array__(self, schema: object = None) -> object:
        pair = self.array.__arrow_c_array__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer(pair[1], b"arrow_array")
        self.change(ctypes.cast(pointer, ctypes.POINTER(CArray)).contents)
        return pair


def put(**changes: int) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        for name, value in changes.items():
            setattr(array, name, value)

    return change


def no_buffer(number: int) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        array.buffers[number] = None

    return change


def number_in(buffer: int, at: int, value: int, type_: Any) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        ctypes.cast(array.buffers[buffer], ctypes.POINTER(type_))[at] = value

    return change


def no_dictionary(array: Any) -> None:
    array.dictionary = ctypes.POINTER(CArray)()


TEXT = ["ab", None, "c"]
MALFORMED: list[tuple[Callable[[], Any], Callable[[Any], None], str]] = [
    (lambda: pa.array([1, 2, 3]), put(length=-1), "length -1"),
    (lambda: pa.array([1, 2, 3]), put(offset=-5), "offset -5"),
    (lambda: pa.array([1, 2, 3]), put(offset=2**63 - 1), "offset"),
    (lambda: pa.array([1, 2, 3]), put(length=2**63 - 1), "length"),
    (lambda: pa.array([1, 2, 3]), put(null_count=9), "9 nulls"),
    (lambda: pa.array([1, 2, 3]), put(null_count=2), "no bitmap"),
    (lambda: pa.array([1, 2, 3]), put(n_buffers=3), "3 buffers, not 2"),
    (lambda: pa.array([1, 2, 3]), put(length=2), "has 2 values, and there are 3"),
    (lambda: pa.array([1, 2, 3]), no_buffer(1), "its values are missing"),
    (lambda: pa.array(TEXT), no_buffer(1), "its values are missing"),
    (lambda: pa.array(TEXT), no_buffer(2), "its text is missing"),
    (lambda: pa.array(TEXT), number_in(1, 0, -4, ctypes.c_int32), "do not ascend"),
    (lambda: pa.array(TEXT), number_in(1, 1, 9, ctypes.c_int32), "do not ascend"),
    (lambda: pa.array(TEXT, pa.large_utf8()), number_in(1, 2, -(2**40), ctypes.c_int64), "do not ascend"),
    (lambda: pa.array(TEXT).dictionary_encode(), no_dictionary, "its dictionary is missing"),
    (lambda: pa.array(TEXT).dictionary_encode(), number_in(1, 2, 2, ctypes.c_int32), "beyond its dictionary"),
    (lambda: pa.array(TEXT).dictionary_encode(), number_in(1, 0, -1, ctypes.c_int32), "beyond its dictionary"),
]


@pytest.mark.parametrize("number", range(len(MALFORMED)))
@pytest.mark.parametrize("whole", [True, False])
def test_a_malformed_array_is_an_error(number: int, whole: bool) -> None:
    make, change, reason = MALFORMED[number]
    index = FilterIndex()
    index.insert("#", 1, where="x IS NOT NULL AND (x > 'a' OR x > 0)")
    array = make()
    if whole:
        fields: Any = {"x": Changed(array, change)}
    else:
        batch = pa.record_batch({"x": array})
        fields = Changed(batch, lambda outer: change(outer.children[0].contents))
        reason = reason.replace("has 2 values, and there are 3", "3 are needed")
    with pytest.raises(ValueError, match=reason):
        index.match_many(["a"] * 3, fields=fields)


def test_an_index_of_what_is_absent_may_be_anything() -> None:
    index = FilterIndex()
    index.insert("#", 1, where="x = 'c'")
    array = Changed(pa.array(TEXT).dictionary_encode(), number_in(1, 1, 10**6, ctypes.c_int32))
    assert rows_of(*index.match_many(["a"] * 3, fields={"x": array})) == [(), (), (1,)]


def test_a_malformed_record_batch_is_an_error() -> None:
    index = FilterIndex()
    index.insert("#", 1, where="x = 1")
    batch = pa.record_batch({"x": [1, 2, 3], "y": [1, 2, 3]})
    for change, reason in [(put(n_children=1), "1 columns, and its schema 2"), (put(offset=-1), "3 rows from -1")]:
        with pytest.raises(ValueError, match=reason):
            index.match_many(["a"] * 3, fields=Changed(batch, change))
    with pytest.raises(ValueError, match="4 are needed"):
        index.match_many(["a"] * 3, fields=Changed(batch, put(offset=1)))
    used = batch.__arrow_c_array__()
    pa.RecordBatch._import_from_c_capsule(*used)
    with pytest.raises(ValueError, match="released already"):
        index.match_many(["a"] * 3, fields=Given(used))
    with pytest.raises(TypeError, match="a tuple of two capsules"):
        index.match_many(["a"] * 3, fields=Given(None))


class Given:
    def __init__(self, pair: Any) -> None:
        self.pair = pair

    def __arrow_c_array__(self, schema: object = None) -> Any:
        return self.pair


# ---- threads -----------------------------------------------------------------------------------------------


def test_selectors_of_rows_are_asked_without_the_gil() -> None:
    """Another thread runs between the beginning and the end of a match_many that has nothing but selectors."""
    index = FilterIndex()
    for id in range(200):
        index.insert("#", id, where=f"x LIKE '%{id}%b%'")
    fields = pa.table({"x": ["abc" * 50] * 20_000})
    topics = ["a"] * 20_000
    assert gives_the_gil_away(lambda: index.match_many(topics, fields=fields))


def test_columns_are_asked_beside_a_writer() -> None:
    """Screens, attributes and filters change all the time: each answer is of some moment."""
    index = FilterIndex()
    index.insert("a.*", 0, where="x = 1")
    problems: list[object] = []
    done = threading.Event()

    def write() -> None:
        try:
            for round in range(600):
                for id in range(1, 25):
                    index.insert("a.*", id, where=f"y{round % 7} = {id} OR x = 2")
                index.insert(f"a.b{round % 3}", 99, where=f"x = 1 AND z{round} IS NULL")
                for id in range(1, 25):
                    index.remove("a.*", id)
                index.remove(f"a.b{round % 3}", 99)
        except BaseException as error:
            problems.append(error)
        finally:
            done.set()

    topics, fields = ["a.b0", "a.c", "b"] * 20, {"x": [1, 2, 1] * 20, "y3": [5] * 60}

    def read() -> None:
        try:
            while not done.is_set():
                found = rows_of(*index.match_many(topics, fields=fields))
                for with_one, with_two, other in zip(found[::3], found[1::3], found[2::3], strict=True):
                    if not {0} <= set(with_one) <= {0, 5, 99} or 0 in with_two or len(with_two) > 24 or other:
                        problems.append((with_one, with_two, other))
                if len(set(found[::3])) != 1 or len(set(found[1::3])) != 1:
                    problems.append(found)
        except BaseException as error:
            problems.append(error)

    side_by_side(write, read, read, problems=problems)
    assert problems == []
    assert index.selectors() == [("a.*", "amqp", 0, "x = 1")]


def test_untyped_text_is_a_number_beside_a_number() -> None:
    index = FilterIndex()
    index.insert("#", 1, where="x > 9")
    assert attribute_of("x").path == ("x",)
    fields = {"x": [Untyped("10"), "10", Untyped("1e999")]}
    assert rows_of(*index.match_many(["a"] * 3, fields=fields)) == [(1,), (), ()]
