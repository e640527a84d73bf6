"""/permissions: the rules in force with how often each decided, and what they decide for somebody and why.

    /permissions                                   pages of rules: position, name, effect, decisions, refusals, text
    /permissions?action=publish&topic=a&user=anna  the rule that decides, and why more salient ones do not apply
    /permissions?shadowed=true                     rules that can never decide, each with those that decide before it

A table keeps what it needs to decide, and not what rules say. So their text is read from the file again, in a thread
that uses a quarter of a processor at most, one request after the other. If the file is another one than the one in
force (its time, size or inode), what it says is not shown.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fanlight_broker.admin.view import OFFSET_MAX, Answer, BadQuery, Query, choice_of, limit_of, number_of
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.enforcement import NO_RULE, OTHERS
from fanlight_broker.core.permissions import Action, Asker
from fanlight_broker.parsing import file_text
from fanlight_broker.parts import small_pieces
from fanlight_broker.permitting.command import WrongRequest, decided, request_of, undecided
from fanlight_broker.permitting.explaining import Request
from fanlight_broker.permitting.permission_faults import shadowed
from fanlight_broker.permitting.permission_reading import PermissionSource
from fanlight_permissions.parties import groups_of
from fanlight_permissions.permission_file import (
    FILE_BYTES_MAX,
    PermissionFileError,
    compile_permissions,
    read,
)
from fanlight_permissions.permission_rule import ATTRIBUTES
from fanlight_permissions.table import PermissionTable
from fanlight_permissions.toml_rules import HEADER
from matchcore.errors import TopicError
from matchcore.keyed import IdAnswers

PAUSE_SECONDS: Final = 0.001  # of the thread's processor time, between two rests
REST: Final = 3  # times that
PAUSE_EVERY: Final = 4_096  # rules, or lines, that are counted
TEXT_MAX: Final = 500  # characters of a rule that are shown
READ_MAX: Final = 8 * TEXT_MAX  # and that are read of it, to find where it ends
SHORT: Final = "..."
NO_RULES: Final = re.compile(r"^[ \t]*\[{1,2}[ \t]*(default|namespace)[ \t]*\]", re.MULTILINE)
SHADOWED_MAX: Final = 2_000  # rules of a file that is looked at for shadowed ones: some 0.2 s of a thread
LISTING: Final = ("limit", "offset", "effect", "rule", "used")
DECIDING: Final = ("topic", "fields", "connection", *ATTRIBUTES)


class ListingRequest(NamedTuple):
    """Which rules are asked for."""

    offset: int
    limit: int
    effect: str
    rule: str
    used: str

    def wants(self, label: str, allow: bool, decisions: int) -> bool:
        if self.effect and self.effect != ("allow" if allow else "deny"):
            return False
        if self.used and self.used != ("true" if decisions else "false"):
            return False
        begins = self.rule.endswith("*") and label.startswith(self.rule[:-1])
        return not self.rule or begins or label == self.rule


class Rests:
    """Called often by a thread: it sleeps so much that it uses a quarter of a processor."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._since: float | None = None

    def __call__(self) -> None:
        """Raises InterruptedError if the broker stops."""
        if self._stopped():
            raise InterruptedError("the broker stops")
        now = time.thread_time()
        if self._since is None:
            self._since = now
        elif now - self._since >= PAUSE_SECONDS:
            time.sleep(REST * (now - self._since))
            self._since = time.thread_time()


class PermissionViews:
    """Answers requests for /permissions. stopped: does the broker stop?"""

    def __init__(self, broker: Broker, stopped: Callable[[], bool]) -> None:
        self._broker = broker
        self._stopped = stopped
        self._turns = asyncio.Lock()

    async def answer(self, query: Query, table: PermissionTable, source: PermissionSource) -> Answer:
        """Of the table in force. Raises BadQuery."""
        if "action" not in query and (stray := [name for name in DECIDING if name in query]):
            raise BadQuery(f"{stray[0]}: say which action, such as action=publish")
        if "action" in query and (stray := [name for name in LISTING if name in query]):
            raise BadQuery(f"{stray[0]} is for the list of rules, and not for a decision")
        try:
            async with self._turns:
                if choice_of(query, "shadowed", ("", "true", "false"), "") == "true":
                    return 200, await asyncio.to_thread(_hidden, source, self._broker, Rests(self._stopped))
                made = self._decision if "action" in query else self._list
                return 200, await made(query, table, source)
        except InterruptedError as error:
            return 503, {"error": str(error)}

    # -- rules --------------------------------------------------------------------------------------------------------

    async def _list(self, query: Query, table: PermissionTable, source: PermissionSource) -> dict[str, Any]:
        asked = ListingRequest(
            number_of(query, "offset", 0, 0, OFFSET_MAX), limit_of(query),
            choice_of(query, "effect", ("", "allow", "deny"), ""), query.get("rule", ""),
            choice_of(query, "used", ("", "true", "false"), ""),
        )
        rows, total, changed = await asyncio.to_thread(_rows, table, source, asked, Rests(self._stopped))
        refused = self._broker.enforcement.denied_by
        for row in rows:
            row["refused"] = refused[row["rule"]] if row["rule"] in refused or not refused[OTHERS] else None
        defaults = {each.value: "allow" if table.default_allows(each) else "deny" for each in Action}
        return {
            **_described(table, source), "changed": changed, "defaults": defaults,
            "refused_without_rule": refused[NO_RULE], "rules": rows, "offset": asked.offset, "limit": asked.limit,
            "total": total,
        }

    # -- a decision ---------------------------------------------------------------------------------------------------

    async def _decision(self, query: Query, table: PermissionTable, source: PermissionSource) -> dict[str, Any]:
        asker = self._asker(query)
        try:
            request = request_of(asker, query["action"], query.get("topic"), query.get("fields"), "")
            view = decided_quietly(table, request)
        except (WrongRequest, TopicError) as error:
            raise BadQuery(str(error)) from error
        why = await asyncio.to_thread(_why, source, view["rule"], request, self._broker, Rests(self._stopped))
        return {
            "action": request.action.value, "topic": query.get("topic"), "syntax": request.syntax or None,
            "asker": {**_shown(asker), "group": sorted(groups_of(asker))}, **view,
            "changed": why is None, **(why or {}), "file": str(source.path),
        }

    def _asker(self, query: Query) -> Asker:
        """Raises BadQuery."""
        given = {name: query[name] for name in ATTRIBUTES if name in query}
        if "connection" not in query:
            groups = frozenset(filter(None, given.pop("group", "").split(",")))
            return Asker(groups=groups, **given)
        if given:
            raise BadQuery(f"{next(iter(given))} is known of a connection: leave it out, or leave out connection")
        client = self._broker.clients.get(number_of(query, "connection", 0, 0, OFFSET_MAX))
        if client is None:
            raise BadQuery(f"there is no connection {query['connection'][:40]}; see /connections")
        return client.subscriber.asker


def decided_quietly(table: PermissionTable, request: Request) -> dict[str, Any]:
    """What the table decides, without counting it as a decision. Raises TopicError."""
    answers, table.answers = table.answers, IdAnswers(table.allows)
    try:
        return decided(table, request)
    finally:
        table.answers = answers


def _described(table: PermissionTable, source: PermissionSource) -> dict[str, Any]:
    return {
        "file": str(source.path), "read": source.read, "rules_in_force": len(table), "parties": len(table.parties),
        "classes": table.classes, "bytes": table.nbytes, "longest_piece_seconds": round(source.longest, 6),
    }


def _shown(asker: Asker) -> dict[str, Any]:
    return {name: getattr(asker, name) for name in ATTRIBUTES if name != "group"}


# -- in a thread --------------------------------------------------------------------------------------------------


def _rows(
    table: PermissionTable, source: PermissionSource, asked: ListingRequest, pause: Callable[[], None]
) -> tuple[list[dict[str, Any]], int, bool]:
    """A page of rules, how many there are, and whether the file is another one. Raises InterruptedError."""
    rows: list[dict[str, Any]] = []
    total = 0
    for rank in range(len(table)):
        if rank % PAUSE_EVERY == 0:
            pause()
        label, decisions = table.label(rank), table.answers.count(rank)
        allow = bool(table.allows[rank])
        if not asked.wants(label, allow, decisions):
            continue
        total += 1
        if asked.offset < total <= asked.offset + asked.limit:
            rows.append({
                "position": rank + 1, "rule": label, "line": table.line(rank), "effect": "allow" if allow else "deny",
                "decisions": decisions,
            })
    texts = _texts(source, {row["line"] for row in rows}, pause)
    for row in rows:
        row["text"] = None if texts is None else texts.get(row["line"])
    return rows, total, texts is None


def _texts(source: PermissionSource, lines: Iterable[int], pause: Callable[[], None]) -> Mapping[int, str] | None:
    """What the rules say that begin on these lines; None: the file is another one than the one in force."""
    if source.changed:
        return None
    try:
        text = file_text(source.path, FILE_BYTES_MAX)
    except ValueError:
        return None
    if source.changed:
        return None
    is_csv = source.path.suffix.lower() == ".csv"
    return _pieces(text, sorted(lines), one_line=is_csv, pause=pause)


def _pieces(text: str, lines: Sequence[int], *, one_line: bool, pause: Callable[[], None]) -> dict[int, str]:
    found: dict[int, str] = {}
    section = NO_RULES.search(text)
    line, start = 1, 0
    for wanted in lines:
        while line < wanted:
            start = text.find("\n", start) + 1
            line += 1
            if line % PAUSE_EVERY == 0:
                pause()
        end = text.find("\n", start)
        if not one_line and end >= 0:  # up to the next rule, or to [default]
            following = HEADER.search(text, end + 1)
            end = len(text) if following is None else following.start()
            if section is not None and start < section.start() < end:
                end = section.start()
        found[wanted] = _short(text[start : min(len(text) if end < 0 else end, start + READ_MAX)])
    return found


def _short(piece: str) -> str:
    """Without the comments at the end, which are about the next rule."""
    rows = [row.rstrip() for row in piece.splitlines()]
    while rows and (not rows[-1] or rows[-1].lstrip().startswith("#")):
        rows.pop()
    whole = "\n".join(rows)
    return whole if len(whole) <= TEXT_MAX else whole[: TEXT_MAX - len(SHORT)] + SHORT


def _why(
    source: PermissionSource, label: str, request: Request, broker: Broker, pause: Callable[[], None]
) -> dict[str, Any] | None:
    """Why more salient rules do not apply; None: the file is another one than the one in force."""
    if source.changed:
        return None
    try:
        with small_pieces:
            rules = read(source.path, broker.limits, pause).rules
            return None if source.changed else undecided(rules, label, request, pause)
    except PermissionFileError:
        return None


def _hidden(source: PermissionSource, broker: Broker, pause: Callable[[], None]) -> dict[str, Any]:
    """Rules that can never decide, as far as it is proven. Raises InterruptedError."""
    rows: list[dict[str, Any]] = []
    view = {"file": str(source.path), "changed": source.changed, "complete": False, "shadowed": rows}
    if source.changed:
        return view
    try:
        with small_pieces:
            file = read(source.path, broker.limits, pause)
            if len(file.rules) > SHADOWED_MAX:
                return view
            for each in shadowed(file.rules, compile_permissions(file, str(source.path), broker.limits, pause)):
                rows.append({"rule": each.rule.label, "effect": each.rule.effect, "by": [by.label for by in each.by]})
                pause()
    except PermissionFileError:
        return {**view, "changed": True}
    return {**view, "complete": True}
