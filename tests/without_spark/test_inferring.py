"""`infer`: fields of decoders found in an archive, and that what was found decodes it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa: Any = pytest.importorskip("pyarrow")

FILE = """# of the market
[[decoder]]
table = "quotes"
filter = "stock.*.*"
format = "json"  # as its publishers write it
words = { venue = 2 }
time = "at"

# the log
[[decoder]]
table = "lines"
filter = "log.#"
format = "text"
[decoder.fields]
line = "string"
"""


def archive(folder: Path, messages: list[tuple[str, bytes]]) -> Path:
    from fanlight_archive import MESSAGE, Writer

    writer = Writer(folder / "archive")
    for at in range(0, len(messages), 100):
        part = messages[at : at + 100]
        columns = {
            "timestamp": pa.array(range(at, at + len(part)), pa.timestamp("us", tz="UTC")),
            "topic": pa.array([topic for topic, _ in part]),
            "value": pa.array([value for _, value in part], pa.binary()),
            "protocol": pa.array(["native"] * len(part)), "syntax": pa.array(["amqp"] * len(part)),
            "qos": pa.array([0] * len(part), pa.int8()), "retain": pa.array([False] * len(part)),
        }  # fmt: skip
        whole = [columns.get(field.name, pa.nulls(len(part), field.type)) for field in MESSAGE]
        writer.append(pa.record_batch(whole, schema=MESSAGE))
    writer.close()
    return folder / "archive"


def quotes(count: int) -> list[tuple[str, bytes]]:
    made = []
    for number in range(count):
        found: dict[str, Any] = {
            "close": number / 2 if number % 3 else number, "volume": number, "at": "2018-03-11T01:00",
            "day": "2018-03-11", "halted": False, "legs": [{"n": 1, "x": None}], "_id": number,
        }  # fmt: skip
        if number >= count // 2:
            found["venue"] = "late"  # a field of newer messages, called like a word of the topic
        if number == 7:
            found["volume"] = "7"
        made.append(("stock.nyse.A", b"{" if number == 9 else json.dumps(found).encode()))
        made.append((f"log.{number}", b"\xff" if number == 3 else b"a line"))
    return made


def infer(*arguments: object) -> int:
    from fanlight_spark.jobs.infer import main

    return main([str(argument) for argument in arguments])


def test_fields_are_written_behind_the_decoder_that_has_none(tmp_path: Path, capsys: Any) -> None:
    from fanlight_spark.decoding.file import InvalidDecoders, load

    place, folder = tmp_path / "decoders.toml", archive(tmp_path, quotes(300))
    place.write_text(FILE, encoding="utf-8")
    with pytest.raises(InvalidDecoders, match=r"decoder quotes: it has no fields.*fanlight_spark\.jobs\.infer ARCHIVE"):
        load(place)
    assert infer(folder, "--decoders", place, "--json", "--fail-above", 2) == 1
    report = json.loads(capsys.readouterr().out)
    text = place.read_text(encoding="utf-8")
    kept = FILE.splitlines()
    head = kept.index("# the log")
    assert text.splitlines()[: head - 1] == kept[: head - 1]
    assert text.splitlines()[head - len(kept) - 1 :] == kept[head - 1 :]
    decoder = load(place)["quotes"]
    from fanlight_spark.decoding.type_names import text_of

    assert {field.name: (field.key, text_of(field.type), field.optional) for field in decoder.fields} == {
        "close": ("close", "double", False), "volume": ("volume", "bigint", False), "at": ("at", "timestamp", False),
        "day": ("day", "date", False), "halted": ("halted", "boolean", False), "id": ("_id", "bigint", False),
        "legs": ("legs", "array<struct<n: bigint, x: string>>", False), "venue_2": ("venue", "string", True),
    }  # fmt: skip
    found = report["tables"]["quotes"]
    (volume,) = [field for field in found["fields"] if field["name"] == "volume"]
    assert volume["conflicts"] == [{"field": "volume", "found": "string", "values": 1, "first_offset": 14}]
    (venue,) = [field for field in found["fields"] if field["key"] == "venue"]
    assert (venue["present"], venue["of"], venue["first_offset"]) == (150, 299, 300)
    assert (found["messages"], sum(found["unreadable"].values()), found["misfits"]) == (300, 1, 2)
    assert report["tables"]["lines"]["unreadable"] == {"not UTF-8, byte 0": 1}
    assert 'zone = "America/New_York"' in text
    assert "1 of volume are string, first at offset 14" in text
    # Once more nothing is written: it is compared, and says the same of what does not fit.
    assert infer(folder, "--decoders", place, "--json", "--fail-above", 3) == 0
    again = json.loads(capsys.readouterr().out)["tables"]["quotes"]
    assert place.read_text(encoding="utf-8") == text
    assert again["unreadable"] == {
        "volume: string in place of bigint": 1,
        "not JSON: Expecting property name enclosed in double quotes, byte 1": 1,
    }
    (drift,) = again["drift"]
    assert drift == {
        "field": "volume", "change": "type", "found": "string", "messages": 1, "first_offset": 14, "last_offset": 14,
    }  # fmt: skip


def test_a_decoder_is_added_with_the_format_that_its_payloads_have(tmp_path: Path, capsys: Any) -> None:
    from fanlight_spark.decoding.file import load

    msgpack = pytest.importorskip("msgpack")
    packed = msgpack.packb({"x": 1, "raw": b"1"})
    messages = [("a.b", packed), ("t.1", b"text"), ("c.1.2", b"1;x;2.5"), ("j.1", b'{"x": 1}')]
    place, folder = tmp_path / "new.toml", archive(tmp_path, messages)
    for table, filter, *more in (("m", "a.*"), ("t", "t.#"), ("j", "j.*"), ("c", "c.*.*", "--format", "csv")):
        assert infer(folder, "--decoders", place, "--table", table, "--filter", filter, *more) == 0
    found = load(place)
    assert {table: decoder.format for table, decoder in found.items()} == {
        "m": "msgpack", "t": "text", "j": "json", "c": "csv",
    }  # fmt: skip
    assert dict(found["c"].words) == {"word2": 2, "word3": 3}
    assert infer(folder, "--decoders", place, "--table", "m", "--filter", "a.*") == 2
    assert infer(folder, "--decoders", place, "--table", "z", "--filter", "z.*") == 2
    assert "matches no topic of the archive" in capsys.readouterr().err


def test_messages_are_taken_from_all_over_the_archive(tmp_path: Path) -> None:
    from fanlight_archive import Archive
    from fanlight_spark.decoding.file import parse
    from fanlight_spark.jobs.infer import sampled

    rare = [("r.1" if number in (5, 6_390) else "b.1", b"{}") for number in range(6_400)]
    decoders = {
        name: parse(f'[[decoder]]\ntable="t"\nfilter="{name}.*"\nformat="json"\n', complete=False)["t"] for name in "br"
    }
    with Archive(archive(tmp_path, rare)) as log:
        taken = [
            offset for batch in sampled(log, decoders["b"], 640, []) for offset in batch.column("offset").to_pylist()
        ]
        assert len(taken) == 640
        assert {offset // 100 for offset in taken} == set(range(64))
        assert sum(batch.num_rows for batch in sampled(log, decoders["r"], 640, [])) == 2


KEYS = st.sampled_from(["x", "y", "X", "_z", "", "a.b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "2018-01-02", "2018-01-02T10:00", "2018-01-02T10:00Z", "2018-02-31"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(["a", "b", "A", "ä`"]), inner, max_size=2),
    max_leaves=3,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), min_size=1, max_size=5))
def test_what_is_proposed_decodes_what_has_no_conflict(records: list[dict[str, Any]]) -> None:
    from fanlight_spark.decoding.file import parse
    from fanlight_spark.decoding.inferring import Inferred
    from fanlight_spark.decoding.proposing import proposed, with_fields
    from fanlight_spark.decoding.table import format_of

    seen = Inferred()
    for offset, record in enumerate(records):
        seen.add(record, None, offset)
    fields = proposed(seen)
    if not fields:
        return
    text = with_fields('[[decoder]]\ntable = "t"\nfilter = "#"\nformat = "json"\n', {"t": fields})
    random.Random(1).shuffle(records)
    payloads = [json.dumps(record).encode() for record in records]
    found = format_of(parse(text)["t"]).decode(pa.array(payloads, pa.binary()))
    if not any(field.conflicts for field in fields):
        assert found.problems.null_count == len(records), (text, found.problems)
    assert not any(note["change"] == "missing" for notes in found.drift.to_pylist() for note in notes or ())
