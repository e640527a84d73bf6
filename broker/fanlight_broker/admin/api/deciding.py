"""Who is known, who may do what, and what rules make of messages: users, permissions, routing rules."""

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import FLAG, MAP, TEXT, WHOLE, Call, Operation, Parameter, items, shape
from fanlight_broker.admin.api.lists import SYNTAX, Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.shown import href
from fanlight_broker.admin.inspection import ASKER
from fanlight_broker.admin.view import BadQuery
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.topics import words_of

VIEW: Final = "/permissions"
NO_PERMISSIONS: Final = "no permissions are set: see the setting permissions"
USER: Final = shape(user=TEXT, groups=items(TEXT), limits=MAP, own_permissions=FLAG, scram=FLAG, connections=WHOLE,
                    href=TEXT)
NAME: Final = Parameter("name", str, "name of the user", least=1, most=1_024)
PASSWORD: Final = Parameter("password", str, "its password", required=True, least=1, most=1_024)
OF_ONE_MAX: Final = 64  # groups, and limits, of one user; they are arguments of a command
GROUP: Final = Parameter("groups", str, "name of a group", least=1, most=1_024)
LIMIT: Final = Parameter("limits", str, "name of a limit", least=1, most=64)
LIMIT_VALUE: Final = Parameter("limits", int, "what it is")
Row = tuple[str, Any]  # name, and what the authenticator knows of it


class DecidingOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        self._changing = asyncio.Lock()
        self.listing: Listing[Row] = Listing(
            rows=self._rows, count=lambda: len(self._users()), id=lambda row: (row[0],), view=self._view,
            keys={"user": lambda row: row[0], "groups": lambda row: ",".join(sorted(row[1].groups))},
            searched=("user", "groups"), exact=("user",),
        )

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ)
        users = partial(Operation, action=Action.ADMIN_WRITE, tag="users", conflicts=True)
        permissions = partial(read, tag="permissions", conflicts=True)
        return (
            read("/users", "Users of the file, their groups and limits; never a secret", self.listing.page,
                 page_of(USER), self.listing.parameters(), tag="users"),
            read("/users/{name}", "One user", self.user, USER, (NAME,), absent=True, tag="users"),
            users("POST", "/users", "Add a user to the file", self.add_user, USER, body=(
                Parameter("user", str, "its name", required=True, least=1, most=1_024), PASSWORD,
                Parameter("groups", list, "names of groups that it is in"),
                Parameter("limits", dict, "quotas of its own: whole numbers by their names"),
            )),
            users("PUT", "/users/{name}/password", "Give a user another password", self.set_password, USER, (NAME,),
                  body=(PASSWORD,), absent=True),
            users("DELETE", "/users/{name}", "Delete a user of the file, and end its connections", self.delete_user,
                  shape(user=TEXT, deleted=FLAG), (NAME,), absent=True),
            permissions("/permissions", "Rules of permissions, and how often each decided", self.permissions, MAP, (
                Parameter("limit", int, "rules at most", 100, least=1, most=1_000),
                Parameter("offset", int, "rules to skip", 0),
                Parameter("effect", str, "only these", choices=("allow", "deny")),
                Parameter("rule", str, "text that its name or place must contain"),
                Parameter("used", bool, "only those that have decided something, or nothing"),
                Parameter("shadowed", bool, "instead: those that can never decide, and which decide before them"),
            )),
            permissions("/permissions/check", "What is decided, by which rule, and why", self.check, MAP, (
                Parameter("action", str, "what is to be done", required=True,
                          choices=tuple(each.value for each in Action)),
                Parameter("topic", str, "topic or filter"), Parameter("fields", str, "of the message, a JSON object"),
                Parameter("connection", int, "number of a connection: who asks"),
                *(Parameter(name, str, f"who asks: {name}") for name in ASKER),
            )),
            Operation("POST", "/permissions/reload", "Read the file of permissions again", self.reload,
                      shape(rules=WHOLE), action=Action.ADMIN_WRITE, conflicts=True, tag="permissions"),
            read("/rules", "Routing rules, the most salient first, and on how many messages each acted", self.rules,
                 shape(items=items(shape(rule=TEXT, filter=TEXT, messages=WHOLE)), total=WHOLE), (
                     Parameter("limit", int, "rules at most", 100, least=1, most=1_000),
                     Parameter("offset", int, "rules to skip", 0),
                 ), tag="rules"),
            Operation("POST", "/rules/check", "What routing rules would make of a message", self.check_rules, MAP,
                      action=Action.ADMIN_READ, body=(
                          Parameter("topic", str, "its topic", required=True, least=1), SYNTAX,
                          Parameter("fields", dict, "its fields, by the names that selectors have for them"),
                      ), tag="rules"),
        )

    # -- users --------------------------------------------------------------------------------------------------------

    def _users(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._operated.action("users", "there are no users")()
        return found

    def _rows(self, after: Id | None) -> Iterable[Row]:
        return list(self._users().items())

    def _view(self, row: Row) -> dict[str, Any]:
        name, user = row
        share = self._operated.broker.shares.of(f"user {name}")
        return {
            "user": name, "groups": sorted(user.groups), "limits": dict(user.limits),
            "own_permissions": bool(user.permissions), "scram": user.scram is not None,
            "connections": share.clients, "href": href("users", name),
        }

    def user(self, call: Call) -> dict[str, Any]:
        return self._shown(call["name"])

    def _shown(self, name: str) -> dict[str, Any]:
        """Raises ApiError: 404."""
        user = self._users().get(name)
        if user is None:
            raise ApiError(404, f"there is no user {name!r} in the file")
        return self._view((name, user))

    async def add_user(self, call: Call) -> dict[str, Any]:
        options = []
        groups, limits = call.body["groups"] or (), call.body["limits"] or {}
        for name, given in (("groups", groups), ("limits", limits)):
            if len(given) > OF_ONE_MAX:
                raise BadParameter(name, f"{len(given)} of them; there may be {OF_ONE_MAX}")
        options += [f"--group={GROUP.check(group)}" for group in groups]
        for limit, value in limits.items():
            LIMIT.check(limit)
            if not isinstance(value, int) or isinstance(value, bool):
                raise BadParameter("limits", f"{limit[:40]} must be a whole number")
            options.append(f"--limit={limit}={LIMIT_VALUE.check(value)}")
        await self._change("add", call.body["user"], call.body["password"], *options)
        return self._shown(call.body["user"])

    async def set_password(self, call: Call) -> dict[str, Any]:
        self._shown(call["name"])
        await self._change("passwd", call["name"], call.body["password"])
        return self._shown(call["name"])

    async def delete_user(self, call: Call) -> dict[str, Any]:
        self._shown(call["name"])
        await self._change("rm", call["name"], None)
        return {"user": call["name"], "deleted": True}

    async def _change(self, verb: str, name: str, password: str | None, *options: str) -> None:
        """Change the file, and read it again with all other settings. Raises FanlightError, ApiError."""
        if any(each < " " for each in f"{name}{password or ''}{''.join(options)}"):
            raise BadParameter("user", "names and passwords have no control characters")
        async with self._changing:  # two processes would overwrite each other's
            await self._operated.action("change_users", "there are no users")(verb, name, password, *options)
            done = await self._operated.action("reload", "nothing here can be reloaded")()
        if "problems" in done:
            raise ApiError(409, "; ".join(done["problems"]), problems=done["problems"])

    # -- permissions --------------------------------------------------------------------------------------------------

    async def _ask(self, query: Mapping[str, Any]) -> dict[str, Any]:
        view = self._operated.views.get(VIEW)
        if view is None:
            raise ApiError(409, NO_PERMISSIONS)
        texts = {
            name: ("true" if value else "false") if isinstance(value, bool) else str(value)
            for name, value in query.items() if value is not None
        }
        try:
            made = view(texts)
            assert not isinstance(made, Generator)
            status, found = await made if isinstance(made, Awaitable) else made
        except BadQuery as error:
            raise ApiError(400, error.text) from None
        if status != 200:
            raise ApiError(409 if status == 404 else status, str(found.get("error", "")))
        return found

    async def permissions(self, call: Call) -> dict[str, Any]:
        return await self._ask(call.parameters)

    async def check(self, call: Call) -> dict[str, Any]:
        return await self._ask(call.parameters)

    async def reload(self, call: Call) -> dict[str, Any]:
        return dict(await self._operated.action("/permissions/reload", NO_PERMISSIONS)())

    # -- routing rules ------------------------------------------------------------------------------------------------

    def rules(self, call: Call) -> dict[str, Any]:
        rules = self._operated.action("rules", "there are no rules")()
        if rules is None:
            return {"items": [], "total": 0}
        begin = call["offset"]
        return {"items": list(rules.views(begin, begin + call["limit"])), "total": len(rules.rules)}

    def check_rules(self, call: Call) -> dict[str, Any]:
        topic, syntax, broker = call.body["topic"].encode(), call.body["syntax"], self._operated.broker
        words_of(topic, syntax, broker.limits)
        rules = broker.publishing.rules
        if rules.empty:
            return {"rules": [], "routed": []}
        try:
            return dict(rules.explain(topic, syntax, call.body["fields"]))
        except (ValueError, TypeError) as error:
            raise BadParameter("fields", str(error)[:200]) from None


