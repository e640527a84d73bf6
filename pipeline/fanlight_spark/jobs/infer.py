"""Fields of decoders, found in an archive: types that hold all values, which are optional, what conflicts and drifts.

    infer ARCHIVE --decoders decoders.toml                    fields for its decoders that have none, into that file
    infer ARCHIVE --decoders decoders.toml --filter 'stock.#' --table quotes       a decoder more, if need be a file

Decoders that have fields are compared with the archive: what they cannot decode, and what has drifted. Messages are
taken from all over the archive, --sample of each table. Formats are json, msgpack, csv and text; without --format it is
the first of json, msgpack and text that nine in ten of the payloads are. Spark is not needed.

exit codes: 0 done, 1 more than --fail-above messages do not fit, 2 wrong arguments or files, or no messages
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fanlight_archive import Archive, ArchiveError, Loss
from fanlight_spark.decoding import json_rows, row_formats
from fanlight_spark.decoding.fields import Field
from fanlight_spark.decoding.file import WITH_SCHEMA, Decoder, Decoders, load
from fanlight_spark.decoding.inferring import Inferred
from fanlight_spark.decoding.proposing import Proposed, proposed, with_fields
from fanlight_spark.decoding.table import TableDecoder
from fanlight_spark.decoding.type_names import type_of
from fanlight_spark.topics import index_of, matched

OK, FOUND, WRONG = 0, 1, 2
SAMPLE: Final = 100_000
STRETCHES: Final = 64  # of an archive, from each of which the same number of messages is taken
GUESSED: Final = 100  # payloads by which a format is
FORMATS: Final = ("json", "msgpack", "csv", "text")
SHOWN: Final = 10  # reasons
CSV_COLUMNS: Final = 256

Read = Callable[[bytes], tuple[Mapping[Any, Any] | None, str | None]]


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    """Run the command line; the exit code. spark: as of other jobs; it is not used."""
    options = _parser().parse_args(arguments)
    try:
        return _work(options)
    except (ValueError, OSError, ArchiveError, ModuleNotFoundError) as error:
        print(f"python -m fanlight_spark.jobs.infer: {error}", file=sys.stderr)
        return WRONG


def _work(options: argparse.Namespace) -> int:
    place: Path = options.decoders
    text = place.read_text(encoding="utf-8") if place.exists() else ""
    known = load(place, complete=False) if text.strip() else Decoders({})
    added = _added(options, known)
    decoders = {**known, **{decoder.table: decoder for decoder in added}}
    if not decoders:
        raise ValueError(f"{place} has no decoders: say --filter and --table of one")
    losses: list[Loss] = []
    with Archive(options.archive) as archive:
        if added and not added[0].format:
            added = [replace(added[0], format=_guess(archive, added[0], losses))]
            decoders[added[0].table] = added[0]
        untyped = {table: decoder for table, decoder in decoders.items() if not decoder.fields}
        untyped = {table: decoder for table, decoder in untyped.items() if decoder.format not in WITH_SCHEMA}
        found = {table: Inferred() for table in untyped}
        typed = {table: Misfits(decoder) for table, decoder in decoders.items() if table not in untyped}
        for table, decoder in decoders.items():
            add = _adder(decoder, found[table]) if table in found else typed[table].add
            for batch in sampled(archive, decoder, options.sample, losses):
                add(batch)
    if empty := [table for table, seen in found.items() if not seen.rows]:
        raise ValueError(f"{options.archive} has no messages of {', '.join(empty)} that can be read: there are no "
                         f"fields to be found{_reasons(found[empty[0]].unreadable)}")  # fmt: skip
    fields = {table: proposed(seen, decoders[table].words) for table, seen in found.items()}
    if fields:
        _write(place, with_fields(text, fields, added))
    report = {
        "archive": str(options.archive), "decoders": str(place), "lost": sum(loss.end - loss.first for loss in losses),
        "tables": {
            **{table: _described(decoders[table], found[table], fields[table]) for table in found},
            **{table: each.report() for table, each in typed.items()},
        },
    }  # fmt: skip
    print(json.dumps(report, indent=1) if options.json else _words(report))
    misfits = sum(table["misfits"] for table in report["tables"].values())  # type: ignore[attr-defined]
    return FOUND if options.fail_above is not None and misfits > options.fail_above else OK


class Misfits:
    """A decoder that has fields, and messages: what does not fit."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder, self._at_work = decoder, TableDecoder(decoder)
        self.messages = 0
        self.problems: Counter[str] = Counter()
        self.drift: dict[tuple[str, str, str | None], list[int]] = {}

    def add(self, batch: Any) -> None:
        made = self._at_work.batch(batch, chosen=True).select(["_offset", "_problem", "_drift"]).to_pylist()
        self.messages += len(made)
        for row in made:
            if row["_problem"] is not None and len(self.problems) < 10_000:
                self.problems[row["_problem"]] += 1
            for note in row["_drift"] or ():
                key = note["field"], note["change"], note["found"]
                if key in self.drift or len(self.drift) < 10_000:
                    of = self.drift.setdefault(key, [0, row["_offset"], row["_offset"]])
                    of[0], of[2] = of[0] + 1, row["_offset"]

    def report(self) -> dict[str, Any]:
        return {
            "filter": self.decoder.filter, "format": self.decoder.format, "new": False, "messages": self.messages,
            "unreadable": dict(self.problems.most_common(SHOWN)), "misfits": self.problems.total(),
            "drift": [
                {"field": field, "change": change, "found": found, "messages": count, "first_offset": first,
                 "last_offset": last}
                for (field, change, found), (count, first, last) in sorted(
                    self.drift.items(), key=lambda each: -each[1][0])
            ],
        }  # fmt: skip


def sampled(archive: Archive, decoder: Decoder, most: int, losses: list[Loss]) -> Iterator[Any]:
    """Batches of messages of a decoder's topics, so many at most: as many from each stretch of the archive."""
    index = index_of([(decoder.filter, 0, decoder.syntax)])

    def wanted(batch: Any) -> Any:
        names = batch.schema.get_field_index
        return matched(index, batch.column(names("topic")), batch.column(names("syntax")))

    start, end = archive.start, archive.end
    left, stretches = most, min(STRETCHES, max(1, end - start))
    for number in range(stretches):
        first, last = (start + (end - start) * each // stretches for each in (number, number + 1))
        here = -(-left // (stretches - number))  # what other stretches did not have, these may
        for batch in archive.read(first, last, where=wanted, lost=losses.append):
            part = batch.slice(0, here)
            here, left = here - part.num_rows, left - part.num_rows
            if part.num_rows:
                yield part
            if not here:
                break


def _adder(decoder: Decoder, seen: Inferred) -> Callable[[Any], None]:
    read = reader_of(decoder.format, decoder.settings)

    def add(batch: Any) -> None:
        values, offsets = batch.column("value").to_pylist(), batch.column("offset").to_pylist()
        for value, offset in zip(values, offsets, strict=True):
            seen.add(*read(value or b""), offset)

    return add


def reader_of(format: str, settings: Mapping[str, Any]) -> Read:
    """What makes a record of a payload, or says why not. Raises ModuleNotFoundError."""
    if format == "json":
        return json_rows.read_object
    if format == "msgpack":
        strict = row_formats.msgpack_reader()
    elif format == "csv":
        names = [
            Field(f"column{number + 1}", f"column{number + 1}", type_of("string")) for number in range(CSV_COLUMNS)
        ]
        rows = row_formats.csv_reader(names, settings.get("delimiter", ","))

        def strict(value: bytes) -> dict[Any, Any]:
            return {key: _typed(text) for key, text in rows(value).items()}

    else:

        def strict(value: bytes) -> dict[Any, Any]:
            try:
                return {"text": value.decode()}
            except UnicodeDecodeError as error:
                raise row_formats.Unreadable(f"not UTF-8, byte {error.start}") from None

    def read(value: bytes) -> tuple[Mapping[Any, Any] | None, str | None]:
        try:
            return strict(value), None
        except row_formats.Unreadable as error:
            return None, str(error)

    return read


def _typed(text: str) -> Any:
    """What a text of CSV is, if it is a number or a boolean."""
    if not text:
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.strip() != text or "_" in text or not text.isascii() or text.lstrip("+-")[:1] not in "0123456789.":
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _guess(archive: Archive, decoder: Decoder, losses: list[Loss]) -> str:
    batches = sampled(archive, decoder, GUESSED, losses)
    values = [value or b"" for batch in batches for value in batch.column("value").to_pylist()]
    if not values:
        raise ValueError(f"{decoder.filter!r} matches no topic of the archive")
    for format in ("json", "msgpack", "text"):
        try:
            read = reader_of(format, {})
        except ModuleNotFoundError:
            continue
        if sum(read(value)[0] is not None for value in values) >= 0.9 * len(values):
            return format
    raise ValueError(f"payloads of {decoder.filter!r} are neither JSON nor MessagePack nor text: say --format")


def _added(options: argparse.Namespace, known: Decoders) -> list[Decoder]:
    """The decoder that the command line names."""
    if options.filter is None and options.table is None:
        return []
    if options.filter is None or options.table is None:
        raise ValueError("--filter and --table go together")
    if options.table in known:
        raise ValueError(f"{options.decoders} has a table {options.table}")
    index_of([(options.filter, 0, options.syntax)])  # raises if it is invalid
    separator, one = ("/", "+") if options.syntax == "mqtt" else (".", "*")
    names = options.filter.split(separator)
    words = {
        f"word{number}": number for number, word in enumerate(names, 1) if word == one and "#" not in names[:number]
    }
    return [Decoder(options.table, options.filter, options.syntax, options.format or "", words, None, ())]


def _write(place: Path, text: str) -> None:
    """All of it or nothing."""
    new = place.with_name(place.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, place)


def _described(decoder: Decoder, seen: Inferred, fields: Sequence[Proposed]) -> dict[str, Any]:
    conflicts = sum(count for field in fields for _, _, count, _ in field.conflicts)
    return {
        "filter": decoder.filter, "format": decoder.format, "new": True, "messages": seen.messages,
        "unreadable": dict(seen.unreadable.most_common(SHOWN)), "misfits": seen.unreadable.total() + conflicts,
        "left_out": seen.room.left_out + max(0, len(seen.whole.members) - len(fields)),
        "fields": [field.report() for field in fields],
    }  # fmt: skip


def _words(report: Mapping[str, Any]) -> str:
    lines = [f"{report['lost']:,} messages of the archive are lost or damaged"] if report["lost"] else []
    for table, of in report["tables"].items():
        what = "fields found" if of["new"] else "as it is in the file"
        lines.append(f"{table}: {of['messages']:,} messages of {of['filter']}, {of['format']}; {what}")
        for field in of.get("fields", ()):
            optional = f", in {field['present']:,} of {field['of']:,}" if field["optional"] else ""
            lines.append(f"  {field['name']:<20} {field['type']}{optional}")
            lines += [
                f"    {each['values']:,} of {each['field']} are {each['found']}, dead letters; first at offset "
                f"{each['first_offset']:,}" for each in field["conflicts"]
            ]  # fmt: skip
        if of.get("left_out"):
            lines.append(f"  {of['left_out']:,} values of other fields: there are too many")
        lines += [f"  {count:,} cannot be read: {reason}" for reason, count in of["unreadable"].items()]
        lines += [
            f"  {each['field']}: {each['change']}{' (' + each['found'] + ')' if each['found'] else ''} in "
            f"{each['messages']:,}, offsets {each['first_offset']:,} to {each['last_offset']:,}"
            for each in of.get("drift", ())[:SHOWN]
        ]  # fmt: skip
    return "\n".join(lines)


def _reasons(reasons: Counter[str]) -> str:
    return "".join(f"; {count:,}: {reason}" for reason, count in reasons.most_common(3))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_spark.jobs.infer", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("archive", type=Path, metavar="ARCHIVE", help="an archive's folder")
    add("--decoders", type=Path, required=True, metavar="FILE", help="the file, read and written; made if need be")
    add("--table", metavar="NAME", help="of a decoder more")
    add("--filter", metavar="FILTER", help="its topics, such as stock.*.*")
    add("--syntax", choices=("amqp", "mqtt"), default="amqp", help="of --filter: words between . (%(default)s) or /")
    add("--format", choices=FORMATS, help="of its payloads (as they look)")
    add("--sample", type=_positive, default=SAMPLE, metavar="N", help="messages of each table (%(default)s)")
    add("--json", action="store_true", help="the report as JSON")
    add("--fail-above", type=int, metavar="N", help="exit 1 if more than N messages or values do not fit")
    return parser


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more is wanted")
    return value


if __name__ == "__main__":
    sys.exit(main())
