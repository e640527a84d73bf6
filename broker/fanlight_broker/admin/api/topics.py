"""The tree of topics, level by level; delayed messages; a window of the archive."""

import asyncio
from collections.abc import Generator, Iterable
from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from fanlight_broker.admin.api.declared import FLAG, NUMBER, TEXT, WHOLE, Call, Operation, Parameter, items, shape
from fanlight_broker.admin.api.lists import NAMESPACE, SYNTAX, Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.admin.api.shown import headers_view, href, payload_view, text_of
from fanlight_broker.core.content import Content
from fanlight_broker.core.delayed_message import DelayedEntry
from fanlight_broker.core.inspection import delayed_view
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.replay import ReplayPart, ReplayRequest
from fanlight_broker.core.topic_tree import Branch, branches
from fanlight_broker.core.topics import SEPARATORS, SYNTAXES, masked, parse_filter, words_of

DELAYED_MAX: Final = 10_000  # that a list looks at, the next ones
READING_MAX: Final = 4  # windows of the archive that are read at the same time
PARTS_MAX: Final = 64  # of the archive, read for one window
WINDOW_SECONDS: Final = 10.0
BRANCH: Final = shape(
    word=TEXT, topic=TEXT, messages=WHOLE, messages_below=WHOLE, retained=WHOLE, is_topic=FLAG, deeper=FLAG,
)
DELAYED: Final = shape(id=WHOLE, client=TEXT, due_seconds=NUMBER, bytes=WHOLE, href=TEXT)
ARCHIVED: Final = shape(offset=WHOLE, time=NUMBER, topic=TEXT, syntax=TEXT, size=WHOLE, cut=FLAG)
Row = tuple[Namespace, DelayedEntry]


class TopicOperations:
    def __init__(self, operated: Operated, publishers: Publishers) -> None:
        self._operated, self._publishers = operated, publishers
        self._reading = 0
        broker = operated.broker
        self.listing: Listing[Row] = Listing(
            rows=self._delayed, count=lambda: sum(len(home.delayed) for home in broker.everywhere()),
            id=lambda row: (row[0].name, row[1].id), view=self._delayed_view, keys={
                "id": lambda row: row[1].id, "client": lambda row: row[1].publisher.name,
                "due_seconds": lambda row: row[1].due, "bytes": lambda row: row[1].nbytes,
                "namespace": lambda row: row[0].name,
            },
            searched=("client",), exact=("client", "namespace"),
        )

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ, absent=True)
        return (
            read("/topics/tree", "One level of the tree of topics", self.tree, shape(
                items=items(BRANCH), next={"type": ["string", "null"]},
            ), (
                Parameter("below", str, "the topic whose next words are wanted; without it, the first words"), SYNTAX,
                NAMESPACE, Parameter("limit", int, "words", 100, least=1, most=1_000),
                Parameter("cursor", str, "`next` of the page before"),
            ), tag="topics"),
            read("/delayed", f"Delayed messages; of those that are due next, {DELAYED_MAX:,}", self.listing.page,
                 page_of(DELAYED), self.listing.parameters(), tag="messages"),
            Operation("DELETE", "/delayed/{id}", "Give a delayed message up", self.cancel, shape(id=WHOLE,
                      cancelled=FLAG), (Parameter("id", int, "its id", least=1, most=2**64 - 1), NAMESPACE),
                      action=Action.ADMIN_WRITE, absent=True, tag="messages"),
            read("/archive/messages", "A window of the archive", self.window, shape(
                items=items(ARCHIVED), next={"type": ["integer", "null"]},
            ), (
                Parameter("filter", str, "messages on topics that this filter matches", "#", least=1), SYNTAX,
                NAMESPACE, Parameter("from", int, "the first offset"),
                Parameter("since", float, "seconds since 1970, in place of `from`", most=2**33),
                Parameter("limit", int, "messages", 100, least=1, most=1_000),
                Parameter("payload_bytes", int, "of each payload that are shown", 1_024, most=65_536),
            ), tag="archive", conflicts=True),
        )

    # -- the tree -----------------------------------------------------------------------------------------------------

    def tree(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        home, syntax, below = self._operated.home(call["namespace"]), call["syntax"], call["below"]
        words: tuple[bytes, ...] = words_of(below.encode(), syntax, home.limits) if below else ()
        after = unquote_to_bytes(call["cursor"]) if call["cursor"] is not None else None
        found = yield from branches(home, words, self._operated.clock(), after, call["limit"] + 1)
        shown, more = found[: call["limit"]], len(found) > call["limit"]
        return {
            "items": [self._branch(each, words, syntax, home) for each in shown],
            "next": quote(shown[-1].word, safe="") if more else None,
        }

    @staticmethod
    def _branch(branch: Branch, below: tuple[bytes, ...], syntax: str, home: Namespace) -> dict[str, Any]:
        topic = SEPARATORS[syntax].join((*below, branch.word))
        return {
            "word": text_of(branch.word), "topic": text_of(masked(topic, syntax)), "syntax": syntax,
            "messages": branch.here, "messages_below": branch.below, "is_topic": branch.is_topic,
            "is_retained": branch.is_retained, "retained": branch.retained, "deeper": branch.deeper,
            "retained_href": href("retained", topic, syntax=syntax, namespace=home.name)
            if branch.is_retained else None,
        }

    # -- delayed messages ---------------------------------------------------------------------------------------------

    def _delayed(self, after: Id | None) -> Iterable[Row]:
        for home in self._operated.broker.everywhere():
            for entry in home.delayed.page(0, DELAYED_MAX):
                yield home, entry

    def _delayed_view(self, row: Row) -> dict[str, Any]:
        home, entry = row
        address = href("delayed", str(entry.id), namespace=home.name)
        view = delayed_view(entry, home.delayed.message(entry.id), self._operated.clock())
        return {**view, "href": address, **({"namespace": home.name} if home.name else {})}

    async def cancel(self, call: Call) -> dict[str, Any]:
        home = self._operated.home(call["namespace"])
        if home.delayed.find(call["id"]) is None:
            raise ApiError(404, f"no delayed message {call['id']} waits", id=call["id"])
        if home.position.refusing:
            raise ApiError(503, "the store takes nothing at present")
        with self._operated.acting():
            home.delayed.cancel(call["id"])
        await self._operated.stored()
        return {"id": call["id"], "cancelled": True}

    # -- the archive --------------------------------------------------------------------------------------------------

    async def window(self, call: Call) -> dict[str, Any]:
        home = self._operated.home(call["namespace"])
        filter, syntax = call["filter"].encode(), call["syntax"]
        parse_filter(filter, syntax, home.limits)
        if home.replay_source is None:
            raise ApiError(404, "no archive; it is turned on by --archive")
        if call["from"] is not None and call["since"] is not None:
            raise BadParameter("since", "cannot be asked for together with from")
        asker = self._publishers.of(call, home)
        for action in (Action.SUBSCRIBE, Action.REPLAY):
            home.enforcement.check_filter(asker, action, filter, syntax, whole=True)
        if self._reading >= READING_MAX:
            raise ApiError(429, "others read the archive; try again", limit=READING_MAX)
        self._reading += 1
        try:
            return await self._read(call, home, ReplayRequest(
                filter, syntax, offset=call["from"],
                since=round(1_000_000 * call["since"]) if call["since"] is not None else None, live=False,
            ))
        finally:
            self._reading -= 1

    async def _read(self, call: Call, home: Namespace, wanted: ReplayRequest) -> dict[str, Any]:
        assert home.replay_source is not None
        most, loop = call["payload_bytes"], asyncio.get_running_loop()

        def encode(
            offset: int, at: int, topic: bytes, syntax: int, payload: bytes, content: Content | None
        ) -> dict[str, Any]:
            named = SYNTAXES[syntax]
            return {
                "offset": offset, "time": at / 1_000_000, "topic": text_of(masked(topic, named)), "syntax": named,
                "size": len(payload), **payload_view(payload, most),
                "content_type": content.content_type if content is not None else None,
                "headers": headers_view(content) if content is not None else {},
            }

        ended: asyncio.Future[int] = loop.create_future()
        home.replay_source.report_end(lambda end: None if ended.done() else ended.set_result(end))
        reader = home.replay_source.read(wanted, encode, lambda row: 200 + len(row.get("payload", "")))
        rows: list[dict[str, Any]] = []
        following: int | None = None
        try:
            async with asyncio.timeout(WINDOW_SECONDS):
                end = await ended
                for _ in range(PARTS_MAX):
                    read: asyncio.Future[ReplayPart] = loop.create_future()
                    reader.ask(end, partial(_tell, read))
                    part = await read
                    if part.error is not None:
                        raise part.error
                    rows += part.messages
                    following = None if part.at_end else part.offset
                    if part.at_end or len(rows) > call["limit"]:
                        break
        except TimeoutError:
            raise ApiError(503, "the archive could not be read in time; ask for less") from None
        finally:
            reader.close()
        if len(rows) > call["limit"]:
            following = rows[call["limit"]]["offset"]
        return {"items": rows[: call["limit"]], "next": following}


def _tell(read: "asyncio.Future[ReplayPart]", part: ReplayPart) -> None:
    if not read.done():
        read.set_result(part)
