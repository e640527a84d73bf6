"""Fields of decoders out of what was seen of them (inferring.py), and the text of a file that has them.

A file keeps what it has, comments too: fields are written behind the last line of the `[[decoder]]` that has none. The
text is read again before it is given to anybody, and must say the same of all else.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanlight_spark.decoding.fields import Field, shortened
from fanlight_spark.decoding.file import FIELDS_MAX, Decoder, Decoders, parse
from fanlight_spark.decoding.inferring import Inferred, Seen, moment_needs_zone
from fanlight_spark.decoding.type_names import text_of, type_of

_HEADER: Final = re.compile(r"^\s*\[\[\s*decoder\s*\]\]")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Proposed:
    """A field.

    conflicts  (path, kind, how many, the first offset) of values that are not of its type: dead letters
    """

    field: Field
    present: int
    of: int
    first: int | None
    last: int | None
    conflicts: Sequence[tuple[str, str, int, int]]
    unzoned: bool

    def report(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.field.name, "key": self.field.key, "type": text_of(self.field.type),
            "optional": self.field.optional, "present": self.present, "of": self.of, "first_offset": self.first,
            "last_offset": self.last,
            "conflicts": [
                {"field": self.field.name + path, "found": kind, "values": count, "first_offset": offset}
                for path, kind, count, offset in self.conflicts
            ],
        }  # fmt: skip

    def line(self) -> str:
        """As TOML, with what there is to know about it behind a #."""
        options: dict[str, Any] = {"type": text_of(self.field.type)}
        if self.field.key != self.field.name:
            options["key"] = self.field.key
        if self.field.optional:
            options["optional"] = True
        value = _text(options["type"]) if len(options) == 1 else "{ " + ", ".join(
            f"{name} = {'true' if each is True else _text(each)}" for name, each in options.items()) + " }"  # fmt: skip
        notes = [f"in {self.present:,} of {self.of:,}"] if self.field.optional else []
        if self.unzoned:
            notes.append('UTC, or say zone = "America/New_York"')
        notes += [
            f"{count:,} of {self.field.name}{path} are {kind}, first at offset {offset:,}"
            for path, kind, count, offset in self.conflicts
        ]  # fmt: skip
        return f"{_key(self.field.name)} = {value}" + (f"  # {'; '.join(map(_comment, notes))}" if notes else "")


def proposed(found: Inferred, taken: Iterable[str] = ()) -> list[Proposed]:
    """Fields for what was seen, FIELDS_MAX at most. taken: names of other columns."""
    names = {name.lower() for name in taken}
    made = []
    places = sorted(found.whole.members.items(), key=lambda each: -each[1].kinds.total())[:FIELDS_MAX]
    kept = {key for key, _ in places}
    for key, place in found.whole.members.items():
        if key in kept and _encodable(key):
            made.append(_proposed(key, place, found, names))
    return made


def _proposed(key: str, place: Seen, found: Inferred, names: set[str]) -> Proposed:
    base = key.lstrip("_") or "field"
    name, number = base, 1
    while name.lower() in names:
        number += 1
        name = f"{base}_{number}"
    names.add(name.lower())
    kind = place.type()
    try:
        type_of(text_of(kind))  # a struct whose field has a name that no type can have
    except ValueError:
        kind = type_of("map<string, string>")
    field = Field(name, key, kind, found.optional(place))
    conflicts = sorted(place.conflicts(), key=lambda each: -each[2])[:16]
    present = place.kinds.total()
    return Proposed(field, present, found.rows, place.first, place.last, conflicts, moment_needs_zone(place))


def with_fields(text: str, fields: Mapping[str, Sequence[Proposed]], added: Sequence[Decoder] = ()) -> str:
    """The text of a file in which these tables have these fields. added: decoders that it does not have yet.

    Raises ValueError where the file is written in a way that cannot be added to.
    """
    old = parse(text, complete=False) if text.strip() else Decoders({})
    lines = text.splitlines()
    for decoder in added:
        lines += [*([""] if lines else []), *_entry(decoder)]
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    tables = [*old, *(decoder.table for decoder in added)]
    if len(heads) != len(tables):
        raise ValueError("its decoders are not written as [[decoder]] each: write the fields into it by hand")
    made: list[str] = lines[: heads[0]]
    for table, head, end in zip(tables, heads, [*heads[1:], len(lines)], strict=True):
        block = lines[head:end]
        after: list[str] = []
        if table in fields:
            while block and (not block[-1].strip() or block[-1].lstrip().startswith("#")):
                after.insert(0, block.pop())  # what stands before the next one is of the next one
            block += ["[decoder.fields]", *(each.line() for each in fields[table])]
        made += block + after
    new = "\n".join(made) + "\n"
    _check(old, parse(new, complete=False), fields)
    return new


def _check(old: Decoders, new: Decoders, fields: Mapping[str, Sequence[Proposed]]) -> None:
    for table, decoder in old.items():
        same = (decoder.filter, decoder.syntax, decoder.format, decoder.words, decoder.time)
        other = new[table]
        wanted = tuple(each.field for each in fields[table]) if table in fields else decoder.fields
        if same != (other.filter, other.syntax, other.format, other.words, other.time) or wanted != other.fields:
            raise ValueError(f"the decoder {table} cannot be added to as it is written: write its fields by hand")


def _entry(decoder: Decoder) -> list[str]:
    lines = ["[[decoder]]", f"table = {_text(decoder.table)}", f"filter = {_text(decoder.filter)}"]
    if decoder.syntax != "amqp":
        lines.append(f"syntax = {_text(decoder.syntax)}")
    lines.append(f"format = {_text(decoder.format)}")
    if decoder.words:
        words = ", ".join(f"{_key(name)} = {number}" for name, number in decoder.words.items())
        lines.append(f"words = {{ {words} }}")
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "?", shortened(text))


def _encodable(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
