"""Records of Python to columns, strictly: a value that is not of its field's type is a problem of its row, and no null.

This says what every decoder means; json_rows.py is a quicker way to the same. A column whose values all have one type
goes to Arrow at once, others value by value.

    type        takes                                     of which a number out of range is a problem
    boolean     true, false
    int bigint  whole numbers written without a point     yes
    float double  numbers                                 yes
    string      text that UTF-8 has (no half of a surrogate pair)
    binary      bytes
    date        ISO 8601, or the format's own             years 1 to 9999
    timestamp   times.py                                  years 1 to 9999
    decimal     numbers, or text of one                   yes; digits behind the last are rounded half even
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException
from typing import Any, Final

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding import times
from fanlight_spark.decoding.fields import (
    CHANGED,
    DRIFT,
    DRIFTS_MAX,
    MISSING,
    NEW,
    Decoded,
    Field,
    Note,
    instants,
    is_time,
    shortened,
)
from fanlight_spark.decoding.type_names import text_of

#: What a value is called in a report; JSON's words.
KINDS: Final = {
    bool: "boolean", int: "number", float: "number", Decimal: "number", str: "string", bytes: "binary", list: "array",
    tuple: "array", dict: "object", datetime: "timestamp", date: "date", type(None): "null",
}  # fmt: skip
#: The largest number that `float`, of 32 bits, has.
SINGLE_MOST: Final = 3.4028234663852886e38
_DECIMALS: Final = Context(prec=80, rounding=ROUND_HALF_EVEN)


class Unfit(Exception):
    """A value that is not of its field's type. path: below the field. found: what it is; None: the type is right."""

    def __init__(self, reason: str, found: str | None = None, path: str = "") -> None:
        super().__init__(reason)
        self.reason, self.found, self.path = reason, found, path


def kind_of(value: object) -> str:
    """What a value is called in a report."""
    return KINDS.get(type(value), type(value).__name__)


def decoded(rows: Sequence[Mapping[Any, Any] | None], problems: list[str | None], fields: Sequence[Field]) -> Decoded:
    """Columns of records. problems: why a row has none, to which those that are found here are added."""
    notes: list[list[Note]] = [[] for _ in rows]
    columns = [_column(field, rows, problems, notes) for field in fields]
    known = {field.key for field in fields}
    for row, record in enumerate(rows):
        if record is not None and not record.keys() <= known:
            for key, value in record.items():
                if key not in known and value is not None:
                    _note(notes[row], shortened(str(key)), NEW, kind_of(value))
    mask = pa.array([problem is not None for problem in problems], pa.bool_())
    if pc.any(mask).as_py():
        columns = [pc.if_else(mask, pa.scalar(None, column.type), column) for column in columns]
    return Decoded(columns, pa.array(problems, pa.string()), pa.array([each or None for each in notes], DRIFT))


def _column(
    field: Field, rows: Sequence[Mapping[Any, Any] | None], problems: list[str | None], notes: list[list[Note]]
) -> Any:
    key = field.key
    values = [None if row is None else row.get(key) for row in rows]
    if not field.optional:
        for row, value in enumerate(values):
            if value is None and rows[row] is not None:
                _note(notes[row], field.name, MISSING, None)
    if (quick := _at_once(field, values)) is not None:
        return quick
    convert = converter(field.type, field.unit, field.zone)
    for row, value in enumerate(values):
        if value is None:
            continue
        unknown: list[tuple[str, str]] = []
        try:
            values[row] = convert(value, unknown)
        except Unfit as error:
            values[row] = None
            name = field.name + error.path
            problems[row] = problems[row] or f"{name}: {error.reason}"
            if error.found is not None:
                _note(notes[row], name, CHANGED, error.found)
        for path, found in unknown:
            _note(notes[row], field.name + path, NEW, found)
    return pa.array(values, field.type)


def _note(notes: list[Note], field: str, change: str, found: str | None) -> None:
    if len(notes) < DRIFTS_MAX:
        notes.append({"field": field, "change": change, "found": found})


_EXACT: Final[Sequence[tuple[Any, frozenset[type], Any]]] = (
    (pa.types.is_boolean, frozenset([bool]), None), (pa.types.is_int64, frozenset([int]), None),
    (pa.types.is_float64, frozenset([float]), None), (pa.types.is_string, frozenset([str]), None),
    (pa.types.is_binary, frozenset([bytes]), None),
    (pa.types.is_timestamp, frozenset([str]), pa.string()),
)  # fmt: skip


def _at_once(field: Field, values: list[Any]) -> Any:
    """The column, if its values are of one type and fit; None: value by value."""
    kinds = {*map(type, values)} - {type(None)}
    if is_time(field) and field.unit is not None:
        return None
    for is_type, exact, given in _EXACT:
        if is_type(field.type) and kinds <= exact:
            try:
                column = pa.array(values, given or field.type)
                made = instants(field, column) if is_time(field) else column
            except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
                return None
            return made if made.null_count == column.null_count else None
    return None


Unknown = list[tuple[str, str]]
Convert = Callable[[Any, Unknown], Any]


def converter(kind: Any, unit: str | None = None, zone: str = "UTC") -> Convert:
    """What makes a value of a type out of a value of Python: it raises Unfit, and adds unknown fields of structs."""
    name = text_of(kind)
    types = pa.types
    if types.is_struct(kind):
        return _struct(kind)
    if types.is_map(kind):
        return _map(kind)
    if types.is_list(kind):
        return _list(kind)
    if types.is_boolean(kind):
        return lambda value, _: value if type(value) is bool else _refuse(value, name)
    if types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return lambda value, _: _whole(value, most, name)
    if types.is_floating(kind):
        largest = SINGLE_MOST if kind == pa.float32() else float("inf")
        return lambda value, _: _real(value, largest, name)
    if types.is_string(kind):
        return lambda value, _: _text(value)
    if types.is_binary(kind):
        return lambda value, _: bytes(value) if isinstance(value, bytes) else _refuse(value, name)
    if types.is_decimal(kind):
        return lambda value, _: _decimal(value, kind)
    if types.is_date(kind):
        return lambda value, _: _date(value)
    return lambda value, _: _time(value, unit, zone)


def _refuse(value: Any, wanted: str) -> Any:
    found = kind_of(value)
    raise Unfit(f"{found} in place of {wanted}", found)


def _beyond(value: Any, name: str) -> Unfit:
    try:
        text = shortened(str(value))
    except ValueError:  # more digits than Python prints
        text = "a number"
    return Unfit(f"{text} is out of range of {name}")


def _whole(value: Any, most: int, name: str) -> int:
    if type(value) is not int:
        if isinstance(value, float | Decimal):
            raise Unfit(f"{shortened(str(value))} in place of {name}", "number")
        _refuse(value, name)
    if not -most <= value < most:
        raise _beyond(value, name)
    return int(value)


def _real(value: Any, largest: float, name: str) -> float:
    if type(value) is float:
        if largest < abs(value) < float("inf"):
            raise _beyond(value, name)
        return value
    if type(value) is not int and not isinstance(value, Decimal):
        _refuse(value, name)
    try:
        real = float(value)
    except OverflowError:
        raise _beyond(value, name) from None
    infinite = isinstance(value, Decimal) and value.is_infinite()
    if abs(real) > largest or (abs(real) == float("inf") and not infinite):
        raise _beyond(value, name)
    return real


def _text(value: Any) -> str:
    if not isinstance(value, str):
        _refuse(value, "string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unfit(f"half of a surrogate pair, character {error.start}") from None
    return str(value)


def _decimal(value: Any, kind: Any) -> Decimal:
    if type(value) not in (int, float, str, Decimal):
        _refuse(value, text_of(kind))
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
        rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=_DECIMALS)
    except DecimalException:
        if isinstance(value, str):
            raise Unfit(f"{shortened(value)!r} is no number") from None
        raise _beyond(value, text_of(kind)) from None
    if not rounded.is_finite() or rounded.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        raise _beyond(value, text_of(kind))
    return rounded


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        _refuse(value, "date")
    try:
        found: date = pa.array([value]).cast(pa.date32())[0].as_py()
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError, ValueError):
        raise Unfit(f"{shortened(value)!r} is no date") from None
    return found


def _time(value: Any, unit: str | None, zone: str) -> datetime:
    if isinstance(value, datetime):
        try:
            return times.of_datetime(value, zone)
        except OverflowError:
            raise _beyond(value, "timestamp") from None
    if unit is not None:
        return _counted(value, unit)
    if not isinstance(value, str):
        _refuse(value, "timestamp")
    try:
        found: datetime | None = times.of_texts(pa.array([value]), zone)[0].as_py()
    except UnicodeEncodeError:
        found = None
    if found is None:
        raise Unfit(f"{shortened(value)!r} is no time")
    return found


def _counted(value: Any, unit: str) -> datetime:
    if isinstance(value, float | Decimal) and unit not in times.FLOATING:
        raise Unfit(f"{shortened(str(value))} in place of whole {unit}", "number")
    if type(value) is not int and not isinstance(value, float | Decimal):
        _refuse(value, f"timestamp in {unit}")
    try:
        column = pa.array([float(value) if unit in times.FLOATING else value])
    except OverflowError:
        raise _beyond(value, "timestamp") from None
    if not (pa.types.is_floating(column.type) or column.type == pa.int64()):
        raise _beyond(value, "timestamp")
    found: datetime | None = times.of_numbers(column, unit)[0].as_py()
    if found is None:
        raise _beyond(value, "timestamp")
    return found


def _struct(kind: Any) -> Convert:
    inside = [(field.name, converter(field.type)) for field in kind]
    names = {name for name, _ in inside}

    def convert(value: Any, unknown: Unknown) -> Any:
        if not isinstance(value, Mapping):
            _refuse(value, "struct")
        if not value.keys() <= names:
            unknown += [
                (f".{shortened(str(key))}", kind_of(each))
                for key, each in value.items() if key not in names and each is not None
            ]  # fmt: skip
        return {name: _below(f".{name}", inner, value.get(name), unknown) for name, inner in inside}

    return convert


def _list(kind: Any) -> Convert:
    inner = converter(kind.value_type)

    def convert(value: Any, unknown: Unknown) -> Any:
        if not isinstance(value, list | tuple):
            _refuse(value, "array")
        return [_below("[]", inner, each, unknown) for each in value]

    return convert


def _map(kind: Any) -> Convert:
    inner = converter(kind.item_type)

    def convert(value: Any, unknown: Unknown) -> Any:
        if not isinstance(value, Mapping):
            _refuse(value, "map")
        return [(_text(key), _below("{}", inner, each, unknown)) for key, each in value.items()]

    return convert


def _below(path: str, inner: Convert, value: Any, unknown: Unknown) -> Any:
    if value is None:
        return None
    before = len(unknown)
    try:
        made = inner(value, unknown)
    except Unfit as error:
        error.path = path + error.path
        raise
    if len(unknown) > before:
        unknown[before:] = [(path + each, found) for each, found in unknown[before:]]
    return made
