"""Users of the file: listed, added, changed and deleted, with their groups and limits; and the groups that there are.

The file is changed by a process of its own (`fanlightd user`), which replaces it whole, for its owner alone (0600), and
keeps its comments; then all settings are read again, and the connections of who was changed or deleted end.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import (
    FLAG,
    MAP,
    TEXT,
    WHOLE,
    Call,
    Operation,
    Parameter,
    items,
    shape,
)
from fanlight_broker.admin.api.lists import Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.shown import href
from fanlight_broker.core.permissions import Action

USER: Final = shape(user=TEXT, groups=items(TEXT), limits=MAP, own_permissions=FLAG, scram=FLAG, connections=WHOLE,
                    href=TEXT)
GROUP_ROW: Final = shape(group=TEXT, users=WHOLE)
NAME: Final = Parameter("name", str, "name of the user", least=1, most=1_024)
PASSWORD: Final = Parameter("password", str, "its password", required=True, least=1, most=1_024)
OF_ONE_MAX: Final = 64  # groups, and limits, of one user; they are arguments of a command
GROUP: Final = Parameter("groups", str, "name of a group", least=1, most=1_024)
LIMIT: Final = Parameter("limits", str, "name of a limit", least=1, most=64)
LIMIT_VALUE: Final = Parameter("limits", int, "what it is")
Row = tuple[str, Any]  # name, and what the authenticator knows of it
GroupRow = tuple[str, int]  # name, and how many users of the file are in it


class UserOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        self._changing = asyncio.Lock()
        self.listing: Listing[Row] = Listing(
            rows=self._rows, count=lambda: len(self._users()), id=lambda row: (row[0],), view=self._view,
            keys={"user": lambda row: row[0], "groups": lambda row: ",".join(sorted(row[1].groups))},
            searched=("user", "groups"), exact=("user",),
        )
        self.groups: Listing[GroupRow] = Listing(
            rows=self._group_rows, count=lambda: len(self._grouped()), id=lambda row: (row[0],),
            view=lambda row: {"group": row[0], "users": row[1]},
            keys={"group": lambda row: row[0], "users": lambda row: row[1]}, searched=("group",), exact=("group",),
        )

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ, tag="users")
        write = partial(Operation, action=Action.ADMIN_WRITE, tag="users", conflicts=True)
        return (
            read("/users", "Users of the file, their groups and limits; never a secret", self.listing.page,
                 page_of(USER), self.listing.parameters()),
            read("/users/{name}", "One user", self.user, USER, (NAME,), absent=True),
            write("POST", "/users", "Add a user to the file", self.add, USER, body=(
                Parameter("user", str, "its name", required=True, least=1, most=1_024), PASSWORD,
                Parameter("groups", list, "names of groups that it is in"),
                Parameter("limits", dict, "quotas of its own: whole numbers by their names"),
            )),
            write("PATCH", "/users/{name}", "Change groups and limits of a user, and end its connections",
                  self.change, USER, (NAME,), absent=True, body=(
                      Parameter("add_groups", list, "names of groups that it is in from now on"),
                      Parameter("remove_groups", list, "names of groups that it is in no more"),
                      Parameter("limits", dict, "quotas of its own: whole numbers by their names, null removes one"),
                  )),
            write("PUT", "/users/{name}/password", "Give a user another password", self.set_password, USER, (NAME,),
                  body=(PASSWORD,), absent=True),
            write("DELETE", "/users/{name}", "Delete a user of the file, and end its connections", self.delete,
                  shape(user=TEXT, deleted=FLAG), (NAME,), absent=True),
            read("/groups", "Groups that users of the file are in", self.groups.page, page_of(GROUP_ROW),
                 self.groups.parameters()),
        )

    def _users(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._operated.action("users", "there are no users")()
        return found

    def _rows(self, after: Id | None) -> Iterable[Row]:
        return list(self._users().items())

    def _group_rows(self, after: Id | None) -> Iterable[GroupRow]:
        return list(self._grouped().items())

    def _grouped(self) -> Counter[str]:
        return Counter(group for user in self._users().values() for group in user.groups)

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

    async def add(self, call: Call) -> dict[str, Any]:
        options = [*_groups(call, "groups", "--group"), *_limits(call, removed=False)]
        await self._change("add", call.body["user"], call.body["password"], *options)
        return self._shown(call.body["user"])

    async def change(self, call: Call) -> dict[str, Any]:
        self._shown(call["name"])
        options = [
            *_groups(call, "add_groups", "--add-group"), *_groups(call, "remove_groups", "--remove-group"),
            *_limits(call, removed=True),
        ]
        if options:
            await self._change("set", call["name"], None, *options)
        return self._shown(call["name"])

    async def set_password(self, call: Call) -> dict[str, Any]:
        self._shown(call["name"])
        await self._change("passwd", call["name"], call.body["password"])
        return self._shown(call["name"])

    async def delete(self, call: Call) -> dict[str, Any]:
        self._shown(call["name"])
        await self._change("rm", call["name"], None)
        return {"user": call["name"], "deleted": True}

    async def _change(self, verb: str, name: str, password: str | None, *options: str) -> None:
        """Change the file, and read it again with all other settings. Raises FanlightError, ApiError."""
        if any(each < " " for each in f"{name}{password or ''}{''.join(options)}"):
            raise BadParameter("user", "names and passwords have no control characters")
        async with self._changing:  # so that a user is shown as this call has left it
            await self._operated.action("change_users", "there are no users")(verb, name, password, *options)
            done = await self._operated.action("reload", "nothing here can be reloaded")()
        if "problems" in done:
            raise ApiError(409, "; ".join(done["problems"]), problems=done["problems"])


def _given(call: Call, name: str) -> Any:
    """Groups or limits of the body. Raises BadParameter."""
    given = call.body[name] or ()
    if len(given) > OF_ONE_MAX:
        raise BadParameter(name, f"{len(given)} of them; there may be {OF_ONE_MAX}")
    return given


def _groups(call: Call, name: str, option: str) -> list[str]:
    """As options of the command. Raises BadParameter."""
    return [f"{option}={GROUP.check(group)}" for group in _given(call, name)]


def _limits(call: Call, *, removed: bool) -> list[str]:
    """As options of the command. removed: null is one that is to be removed. Raises BadParameter."""
    options = []
    for limit, value in dict(_given(call, "limits")).items():
        LIMIT.check(limit)
        if value is None and removed:
            options.append(f"--remove-limit={limit}")
        elif not isinstance(value, int) or isinstance(value, bool):
            raise BadParameter("limits", f"{limit[:40]} must be a whole number")
        else:
            options.append(f"--limit={limit}={LIMIT_VALUE.check(value)}")
    return options
