"""The archive's segments, the positions of those who read it, and the holds that retention waits for."""

from collections.abc import Generator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final

from fanlight_broker.admin.api.declared import FLAG, NUMBER, TEXT, WHOLE, Call, Operation, maybe, shape
from fanlight_broker.admin.api.lists import Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.core.permissions import Action

NO_ARCHIVE: Final = "no archive; it is turned on by --archive"
SEGMENT: Final = shape(segment=TEXT, first=WHOLE, end=WHOLE, messages=WHOLE, bytes=maybe(WHOLE), epoch=WHOLE,
                       earliest=maybe(NUMBER), latest=maybe(NUMBER), open=FLAG)
REPLAY: Final = shape(replay=WHOLE, client=maybe(TEXT), user=maybe(TEXT), protocol=maybe(TEXT), namespace=TEXT,
                      queue=maybe(TEXT), filter=maybe(TEXT), syntax=TEXT, offset=maybe(WHOLE), behind=maybe(WHOLE),
                      messages=WHOLE)
HOLD: Final = shape(hold=TEXT, by=TEXT, offset=WHOLE, epoch=WHOLE, behind=WHOLE, written=NUMBER, problem=maybe(TEXT))
Row = Mapping[str, Any]


class ArchiveOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ, tag="archive", absent=True, conflicts=True)
        return (
            read("/archive/segments", "Files of the archive: offsets, sizes, times", self.segments, page_of(SEGMENT),
                 _segments([]).parameters()),
            read("/archive/replays", "Who reads the archive, and how far", self.replays, page_of(REPLAY),
                 _replays([]).parameters()),
            read("/archive/holds", "Readers that retention waits for", self.holds, page_of(HOLD),
                 _holds([]).parameters()),
        )

    def _action(self, name: str) -> Any:
        found = self._operated.actions.get(name)
        if found is None:
            raise ApiError(404, NO_ARCHIVE)
        return found

    async def segments(self, call: Call) -> dict[str, Any]:
        rows = await self._action("archive_segments")()
        return await self._operated.slices.made(_segments(rows).page(call))

    def replays(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        return _replays(self._action("archive_replays")()).page(call)

    def holds(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        return _holds(self._action("archive_holds")()).page(call)


def _segments(rows: list[Row]) -> Listing[Row]:
    return _listing(rows, "first", ("first", "end", "messages", "bytes", "earliest", "latest"), ("segment",), ())


def _replays(rows: list[Row]) -> Listing[Row]:
    named = ("client", "user", "namespace", "queue")
    return _listing(rows, "replay", ("offset", "behind", "messages", *named), ("client", "user", "queue"), named)


def _holds(rows: list[Row]) -> Listing[Row]:
    return _listing(rows, "hold", ("offset", "behind", "written"), ("hold", "by"), ("hold",))


def _listing(
    rows: list[Row], number: str, keys: tuple[str, ...], searched: tuple[str, ...], exact: tuple[str, ...]
) -> Listing[Row]:
    return Listing(
        rows=lambda after: rows, count=lambda: len(rows), id=lambda row: (row[number],), view=dict,
        keys={key: itemgetter(key) for key in dict.fromkeys((number, *keys, *searched))},
        searched=searched, exact=exact,
    )
