"""`fanlightd rules compare`: two files of rules on what was archived, before the new one is put in force."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from fanlight_archive import MESSAGE, Archive, ArchiveError
from fanlight_archive.arrow import pa
from fanlight_broker.config import Exit
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.ruling.compare_page import page
from fanlight_broker.ruling.comparing import Comparison, SnapshotRow
from fanlight_broker.ruling.rule_file import RuleFileError, load
from matchcore.body_reader import BodyCounts
from matchcore.field_values import values_of
from matchcore.fields import Attributes
from matchcore.kleene import key_of
from matchcore.message_rows import MessageReader, MessageRows

TOPICS_OWN: Final = b"$"
NOTES: Final = (
    "the archive has what came out of the rules that were in force: copies are in it as messages, and what was dropped "
    "or not archived is not",
    "permissions, selectors of subscriptions and queue groups are not asked; a delayed message is tried when it came",
)
USER: Final = "$user"
ASKS_USER: Final = "rules ask for $user, which an archive does not have"


class CompareOptions(NamedTuple):
    """old: None where no rules were in force."""

    archived: Path  # the archive's folder
    new: Path
    old: Path | None = None
    subscriptions: Path | None = None
    since: datetime | None = None
    until: datetime | None = None
    html: Path | None = None
    top: int = 20
    as_json: bool = False


def compare_rules(asked: CompareOptions, limits: Limits) -> int:
    try:
        found = _compared(asked, limits)
        view = _view(asked, found)
        if asked.html is not None:
            asked.html.write_text(page(view, asked.top), encoding="utf-8")
    except RuleFileError as error:
        for problem in error.problems:
            print(f"fanlightd: {problem}", file=sys.stderr)
        return Exit.USAGE
    except (ValueError, OSError, ArchiveError, InvalidFilter) as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.USAGE
    print(json.dumps(view) if asked.as_json else "\n".join(_lines(view, asked.top)))
    return Exit.FAILED if found.different else Exit.OK


def _compared(asked: CompareOptions, limits: Limits) -> Comparison:
    old, new = (
        RuleSet([] if path is None else load(path, limits, archive=True), limits) for path in (asked.old, asked.new)
    )
    subscriptions = [] if asked.subscriptions is None else list(_subscribers(asked.subscriptions))
    comparison = Comparison(old, new, subscriptions, limits)
    attributes = Attributes()
    names = {attributes.acquire(each): key_of(each) for each in comparison.attributes}
    reader = MessageReader(attributes, BodyCounts())
    since, until = (None if at is None else int(at.timestamp() * 1_000_000) for at in (asked.since, asked.until))
    with Archive(asked.archived) as archive:
        for batch in archive.read(since=since, until=until):
            columns = [batch.column(field.name) for field in MESSAGE]
            rows = MessageRows(pa.RecordBatch.from_arrays(columns, names=MESSAGE.names))
            topics, syntaxes = (batch.column(name).to_pylist() for name in ("topic", "syntax"))
            for row, (topic, syntax) in enumerate(zip(topics, syntaxes, strict=True)):
                octets, fields = topic.encode(), {}
                if octets.startswith(TOPICS_OWN):  # on which rules never act
                    continue
                if names and comparison.concerned(octets, syntax):
                    values: Mapping[int, object] = values_of(reader.read_row(rows, row))
                    fields = {names[number]: value for number, value in values.items()}
                comparison.take(octets, syntax, fields)
    return comparison


def _subscribers(path: Path) -> Iterator[SnapshotRow]:
    """Of a snapshot: docs/snapshots.md. Raises ValueError, OSError."""
    headed, count, end = False, 0, None
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if "snapshot" in row:
                    headed = True
                elif "end" in row:
                    end = row["end"]
                else:
                    filter = row["filter"].encode("utf-8", "surrogateescape")
                    syntax = row.get("syntax", SYNTAXES[0])
                    if syntax not in SYNTAXES:
                        raise ValueError(f"no syntax {syntax!r}")
                    yield SnapshotRow(row.get("user", ""), row.get("client", ""), filter, syntax)
                    count += 1
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{path}, line {number}: no line of a snapshot ({error})") from None
    if headed and end != count:
        raise ValueError(f"{path}: has {count} subscriptions, and its end says {end}: take it again")


def _view(asked: CompareOptions, found: Comparison) -> dict[str, Any]:
    unused_old, unused_new = found.never_hit()
    asks_user = any(key_of(each) == USER for each in found.attributes)
    return {
        "archive": str(asked.archived), "old": None if asked.old is None else str(asked.old), "new": str(asked.new),
        "differ": bool(found.different), "messages": found.messages, "different": found.different,
        "topics": _rows(found.by_topic), "subscribers": _rows(found.by_subscriber),
        "hits": dict(found.hits[1].most_common()), "failed": dict(found.failed.most_common()),
        "never_hit": unused_new, "old_never_hit": unused_old, "notes": [*NOTES, *[ASKS_USER] * asks_user],
    }  # fmt: skip


def _rows(counts: Counter[Any]) -> list[dict[str, Any]]:
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    return [{**row._asdict(), "messages": count} for row, count in ordered]


def _lines(view: Mapping[str, Any], top: int) -> Iterator[str]:
    yield f"{view['different']:,} of {view['messages']:,} messages go elsewhere, or as something else"
    for row in view["topics"][:top]:
        rules = f"{row['rules_before'] or 'no rule'} -> {row['rules_after'] or 'no rule'}"
        yield _plain(f"  {row['messages']:,} {row['what']} on {row['at']}, of {row['topic']} ({rules})")
    for row in view["subscribers"][:top]:
        who = f"{row['user'] or 'anonymous'} {row['client']}".strip()
        yield _plain(f"  {row['messages']:,} {row['what']} for {who}, by {row['filter']}")
    more = max(len(view["topics"]), len(view["subscribers"])) - top
    if more > 0:
        yield f"  (the first {top} of each; --top, --json, --html)"
    if view["never_hit"]:
        yield _plain("new rules that acted on no message: " + ", ".join(view["never_hit"]))
    for rule, count in view["failed"].items():
        yield _plain(f"{rule} could not act on {count:,} messages: its topic cannot be made")
    for note in view["notes"]:
        yield f"note: {note}"


def _plain(line: str) -> str:
    """On a terminal: no name that somebody chose may have control characters there."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
