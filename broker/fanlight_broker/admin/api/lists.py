"""Lists: searched, sorted and paged by the broker, in steps (slices.py).

    rows --filters, q--> those asked for --sort, order--> the page behind the cursor

A page begins behind the position of the last row of the one before: its sort key, and its id. So what comes and goes in
between moves nothing, and a page far behind costs no more than the first one. All rows are looked at for each page,
unless they come in the order asked for and nothing is searched for; what is kept of them is one page.
"""

import base64
import binascii
import json
from bisect import insort
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

from fanlight_broker.admin.api.declared import FLAG, WHOLE, Call, Parameter, Schema, items, shape
from fanlight_broker.admin.api.problems import BadParameter
from fanlight_broker.admin.api.shown import size_of

Row = TypeVar("Row")
Id = tuple[Any, ...]
View = dict[str, Any]
Rank = tuple[int, Any]  # of a value in the order asked for: None is before all others

LIMIT_MAX: Final = 1_000  # rows of a page: some 300 kB of JSON
LIMIT: Final = 100
LOOKED_AT_MAX: Final = 2_000_000  # places of rows, for one page: some 2 s of the processor
# Of the loop's time for one page. Lists have a quarter of the loop, and the listener closes a request after 60 s: so a
# page that takes long, as some rows cost more than others, is answered as far as it came.
WORKED_SECONDS_MAX: Final = 5.0
LOOK: Final = 64  # rows between two looks at the clock, 1 to 5 µs each
LOOK_SEARCHED: Final = 8  # the same where text is searched: of names of 64 KiB at worst
PAGE_BYTES: Final = 2 * 1024 * 1024  # of a page, about; it has fewer rows then
VIEWED: Final = 16  # rows shown between two looks at the clock, 5 to 20 µs each
CURSOR_MAX: Final = 200_000  # characters: a name may have 64 KiB, and some have to be escaped


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """What a list is made of.

    rows      all of them, in the order of their ids if `ordered`, from behind an id on; may be looked at in several
              turns. None among them: a look at the clock is due
    count     how many there are, without looking at them
    id        what identifies a row, comparable with those of the others
    keys      what it may be sorted by; and, of `exact`, what may be asked for
    searched  the keys that `q` looks into
    view      how a row is shown; None: it has gone since it was looked at
    """

    rows: Callable[[Id | None], Iterable[Row | None]]
    count: Callable[[], int]
    id: Callable[[Row], Id]
    keys: Mapping[str, Callable[[Row], Any]]
    view: Callable[[Row], View | None]
    searched: tuple[str, ...]
    exact: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # keys that are true or false
    numbers: tuple[str, ...] = ()  # keys of `exact` that are numbers
    ordered: bool = False  # `rows` are in the order of their ids

    def parameters(self) -> tuple[Parameter, ...]:
        own = tuple(
            Parameter(name, bool if name in self.flags else int if name in self.numbers else str,
                      f"only those whose {name} is this")
            for name in self.exact
        )
        return (*PAGING, *own, Parameter("sort", str, "the key to sort by", choices=tuple(self.keys)))

    def page(self, call: Call, wanted: Callable[[Row], bool] | None = None) -> Generator[None, None, View]:
        """One page, in steps. wanted: what else a row must be. Raises BadParameter."""
        asked = _Asked(self, call)
        kept: list[tuple[Any, Id, int, Row]] = []
        total = 0
        complete = True
        look = LOOK_SEARCHED if asked.searches else LOOK
        plain = wanted is None and not asked.searches
        quick = plain and self.ordered and asked.by_id and not asked.backwards
        worked = 0.0
        resumed = perf_counter()
        for looked_at, row in enumerate(self.rows(asked.after_id if quick else None), 1):
            if row is not None and asked.lets_through(row) and (wanted is None or wanted(row)):
                total += 1
                place = asked.place(row)
                if asked.is_behind(place):
                    keep(kept, (*place, total, row), asked.limit + 1, backwards=asked.backwards)
                    if quick and len(kept) > asked.limit:
                        break
            if row is None or looked_at % look == 0:  # with no row in hand, which may go meanwhile
                worked += perf_counter() - resumed
                yield
                resumed = perf_counter()
                if looked_at >= LOOKED_AT_MAX or worked >= WORKED_SECONDS_MAX:
                    complete = False
                    break
        if asked.backwards:
            kept.reverse()
        more = len(kept) > asked.limit
        del kept[asked.limit :]
        shown: list[View] = []
        room = PAGE_BYTES
        last = 0  # of those kept, the one that the page ends with
        for number, (_, _, _, row) in enumerate(kept, 1):
            view = self.view(row)
            if view is not None:
                room -= size_of(view)
                if room < 0 and shown:
                    more = True
                    break
                shown.append(view)
            last = number
            if number % VIEWED == 0:
                yield
        following = asked.cursor(kept[last - 1][:2]) if more else None
        return {
            "items": shown, "total": self.count() if plain else total, "next": following, "complete": complete,
        }


def keep(kept: list[Any], place: Any, most: int, *, backwards: bool) -> None:
    """Keep the first `most` places of a sorted list; the last ones if `backwards`."""
    if len(kept) < most:
        insort(kept, place)
    elif backwards and place > kept[0]:
        insort(kept, place)
        del kept[0]
    elif not backwards and place < kept[-1]:
        insort(kept, place)
        del kept[-1]


class _Asked:
    """What one request wants of a list. Raises BadParameter."""

    def __init__(self, listing: "Listing[Any]", call: Call) -> None:
        self.limit: int = call["limit"]
        self.backwards = call["order"] == "desc"
        self._sort: str | None = call["sort"]
        self.by_id = self._sort is None
        self._listing = listing
        self._key = listing.keys[self._sort] if self._sort is not None else None
        self._text: str = (call["q"] or "").casefold()
        self._searched = [listing.keys[name] for name in listing.searched]
        self._exact = [
            (listing.keys[name], call[name]) for name in listing.exact if call.parameters.get(name) is not None
        ]
        self.searches = bool(self._text or self._exact)
        self._after = self._read(call["cursor"]) if call["cursor"] is not None else None

    @property
    def after_id(self) -> Id | None:
        return None if self._after is None else self._after[1]

    def lets_through(self, row: Any) -> bool:
        for key, value in self._exact:
            if key(row) != value:
                return False
        return not self._text or any(self._text in str(key(row)).casefold() for key in self._searched)

    def place(self, row: Any) -> tuple[Rank, Id]:
        id = self._listing.id(row)
        if self._key is None:
            return (0, ""), id
        value = self._key(row)
        return ((0, "") if value is None else (1, value)), id

    def is_behind(self, place: tuple[Rank, Id]) -> bool:
        if self._after is None:
            return True
        try:
            return place < self._after if self.backwards else place > self._after
        except TypeError:
            raise BadParameter("cursor", NO_CURSOR) from None

    def cursor(self, place: tuple[Rank, Id]) -> str:
        """Where the next page begins."""
        rank, id = place
        text = json.dumps([self._sort, self.backwards, *rank, list(id)], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def _read(self, cursor: str) -> tuple[Rank, Id]:
        try:
            sort, backwards, known, value, id = json.loads(
                base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True)
            )
        except (ValueError, TypeError, RecursionError, binascii.Error):
            raise BadParameter("cursor", NO_CURSOR) from None
        if (sort, backwards) != (self._sort, self.backwards):
            raise BadParameter("cursor", "is of a list in another order; begin again without it")
        flat = isinstance(id, list) and all(isinstance(each, str | int) for each in id)
        if not flat or known not in (0, 1) or not isinstance(value, str | int | float):
            raise BadParameter("cursor", NO_CURSOR)
        return (known, value), tuple(id)


NO_CURSOR: Final = "is not the `next` of a page of this list"
PAGING: Final = (
    Parameter("limit", int, "rows of the page", LIMIT, least=1, most=LIMIT_MAX),
    Parameter("cursor", str, "`next` of the page before", most=CURSOR_MAX),
    Parameter("q", str, "text that one of the row's main keys must contain, in any case", most=1_000),
    Parameter("order", str, "asc: the smallest first; desc: the largest", "asc", choices=("asc", "desc")),
)
NAMESPACE: Final = Parameter("namespace", str, "the namespace that it is in; without it the root")
SYNTAX: Final = Parameter("syntax", str, "how topics and filters are written", "amqp", choices=("amqp", "mqtt"))


def page_of(row: Schema) -> Schema:
    """The schema of a page of such rows."""
    return shape(items=items(row), total=WHOLE, next={"type": ["string", "null"]}, complete=FLAG)


def behind(rows: Iterable[Row], id: Callable[[Row], Id], after: Id | None) -> Iterable[Row | None]:
    """Rows in the order of their ids, from behind one on."""
    try:
        for number, each in enumerate(rows, 1):
            if after is None or id(each) > after:
                yield each
            elif number % LOOK == 0:
                yield None
    except TypeError:  # ids of another list
        raise BadParameter("cursor", NO_CURSOR) from None
