"""What an operator sees of an archive: its segments, and who reads at which position."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fanlight_archive import manifest
from fanlight_archive.holds import Hold
from fanlight_archive.segment import name_of
from fanlight_broker.storage.replays import ArchiveReading
from fanlight_broker.storage.writer_thread import WriteProgress


def segment_views(folder: Path, state: WriteProgress) -> list[dict[str, Any]]:
    """By offset; the last one may be open. Reads the manifest: not in the loop. Raises OSError, ArchiveError."""
    found = manifest.parse((folder / manifest.NAME).read_bytes())
    spans = sorted((each for each in found.spans.values() if each.end > found.start), key=lambda each: each.first)
    rows = [
        {
            "segment": span.name, "first": span.first, "end": span.end, "messages": span.end - span.first,
            "bytes": span.size, "epoch": span.epoch, "earliest": span.earliest / 1_000_000,
            "latest": span.latest / 1_000_000, "open": False,
        } for span in spans
    ]  # fmt: skip
    first = spans[-1].end if spans else state.start
    if state.end > first:  # what is written in it so far
        rows.append({
            "segment": name_of(first, is_open=True), "first": first, "end": state.end, "messages": state.end - first,
            "bytes": None, "epoch": state.epoch, "earliest": None, "latest": None, "open": True,
        })
    return rows


def hold_views(holds: Iterable[Hold], end: int) -> list[dict[str, Any]]:
    """As retention has found them last. end: of the archive"""
    return [
        {
            "hold": hold.name, "by": hold.by, "offset": hold.offset, "epoch": hold.epoch,
            "behind": max(0, end - hold.offset), "written": hold.written, "problem": hold.problem,
        } for hold in holds
    ]  # fmt: skip


def replay_views(readings: Iterable[ArchiveReading], end: int) -> list[dict[str, Any]]:
    """In the loop. end: of the archive"""
    return [_replay_view(each, end) for each in readings]


def _replay_view(reading: ArchiveReading, end: int) -> dict[str, Any]:
    wanted, at = reading.wanted, reading.position
    by = wanted.by
    return {
        "replay": reading.number, "client": by.name if by is not None else None,
        "user": by.user if by is not None else None, "protocol": by.protocol if by is not None else None,
        "namespace": wanted.namespace, "queue": wanted.queue,
        "filter": wanted.filter.decode(errors="backslashreplace") if wanted.queue is None else None,
        "syntax": wanted.syntax, "offset": at, "behind": None if at is None else max(0, end - at),
        "messages": reading.messages,
    }  # fmt: skip
