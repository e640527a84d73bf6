"""An archive that keeps what passes in a list: the real tap and selection, with a reader that the schedule moves.

It survives each kill whole: what is taken in a turn is in it before anything of that turn can be acknowledged.
"""

from collections.abc import Callable
from ctypes import string_at
from struct import unpack
from typing import Any, NamedTuple

from fanlight_broker.core.archive_selection import ArchiveSelection, TopicSelection
from fanlight_broker.core.content import Content
from fanlight_broker.core.recorder import NoRecorder
from fanlight_broker.core.replay import Encode, ReplayPart, ReplayRequest, ReplayStart
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.archive_tap import ArchiveTap, Columns
from tests.simulation.schedule import Schedule
from tests.simulation.selecting import wants

EVERYTHING = ((b"#", "amqp"),)
READ = 0.05  # seconds until a part is read, at most
PART = 4  # messages, at most


class Row(NamedTuple):
    at: int  # microseconds UTC
    topic: bytes
    syntax: int
    payload: bytes
    content: Content | None  # if it has more than these


class ArchiveRecorder(NoRecorder):
    """What one broker process has of the archive: `Recorder` and `ReplaySource`.

    running  is the process alive?
    """

    def __init__(
        self, rows: list[Row], schedule: Schedule, ahead: Callable[[], float], running: Callable[[], bool]
    ) -> None:
        self.rows, self.schedule, self.ahead, self.running = rows, schedule, ahead, running
        self.tap = ArchiveTap(
            rows_max=1_000, bytes_max=1 << 30, batch_bytes_max=1 << 20, begun=self._begun, full=self._full
        )
        self.selection = ArchiveSelection(self.tap, EVERYTHING)

    def _begun(self) -> None:
        self.tap.utc = self.ahead()

    def _full(self, columns: Columns) -> None:
        octets = {name: string_at(*place) if place[1] else b"" for name, place in columns.buffers().items()}
        times = unpack(f"{columns.rows}q", octets["times"])
        topics, values = (self._strings(columns.rows, octets, name) for name in ("topic", "value"))
        for row in range(columns.rows):
            extra = columns.extras.get(row)
            content = extra.format.read(extra) if extra is not None else None
            self.rows.append(Row(times[row], topics[row], octets["syntax"][row], values[row], content))
        self.tap.free_bytes(columns.octets)

    @staticmethod
    def _strings(rows: int, octets: dict[str, bytes], name: str) -> list[bytes]:
        ends = unpack(f"{rows + 1}i", octets[f"{name}_ends"])
        return [octets[f"{name}s"][ends[row] : ends[row + 1]] for row in range(rows)]

    # -- core.replay.ReplaySource -------------------------------------------------------------------------------------

    def read(self, wanted: ReplayRequest, encode: Encode, size: Callable[[Any], int] = len) -> "ArchiveReading":
        return ArchiveReading(self, wanted, encode)

    def report_end(self, then: Callable[[int], None]) -> None:
        self.tap.flush()
        self.schedule.soon(self.call, then, len(self.rows), most=READ)

    @property
    def written(self) -> int:
        return len(self.rows)

    def wait(self, then: Callable[[], None]) -> None:
        raise AssertionError("there are no streams here")

    def call(self, then: Callable[[Any], None], value: Any) -> None:
        if self.running():
            then(value)


class ArchiveReading:
    def __init__(self, recorder: ArchiveRecorder, wanted: ReplayRequest, encode: Encode) -> None:
        self._recorder, self._wanted, self._encode = recorder, wanted, encode
        self._selection = TopicSelection([(wanted.filter, wanted.syntax)])
        self._next: int | None = None

    def ask(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        self._recorder.schedule.soon(self._part, end, then, most=READ)

    def begin_at(self, offset: int) -> None:
        raise AssertionError("there are no streams here")

    def close(self) -> None: ...

    def _accepts(self, row: Row) -> bool:
        if self._wanted.condition is None:
            return True
        # As text: the archive keeps no types of headers (docs/selectors.md).
        headers = {name: str(value) for name, value in row.content.headers} if row.content is not None else {}
        fields = {name: headers[name] for name in ("n", "kind") if name in headers}
        return wants(self._wanted.condition.where, row.topic.decode(), fields, "/" if row.syntax else ".")

    def _part(self, end: int | None, then: Callable[[ReplayPart], None]) -> None:
        rows, wanted, kept = self._recorder.rows, self._wanted, None
        if self._next is None:
            since = (number for number, row in enumerate(rows) if row.at >= (wanted.since or 0))
            self._next = wanted.offset if wanted.offset is not None else next(since, len(rows))
            kept = ReplayStart("archive", 0, len(rows), self._next, 100 * len(rows), None)
        until, found = len(rows) if end is None else end, list[Any]()
        while self._next < until and len(found) < PART:
            row = rows[self._next]
            if self._selection.wants(row.topic, SYNTAXES[row.syntax]) and self._accepts(row):
                found.append(self._encode(self._next, row.at, row.topic, row.syntax, row.payload, row.content))
            self._next += 1
        part = ReplayPart(found, self._next, 1, self._next >= until, None, kept)
        self._recorder.schedule.soon(self._recorder.call, then, part, most=READ)
