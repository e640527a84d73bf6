"""Who may do what, and what rules make of messages: permissions, quotas, routing rules."""

from collections.abc import Awaitable, Generator, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import MAP, TEXT, WHOLE, Call, Operation, Parameter, items, shape
from fanlight_broker.admin.api.lists import SYNTAX
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.inspection import ASKER
from fanlight_broker.admin.view import BadQuery
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.topics import words_of

VIEW: Final = "/permissions"
NO_PERMISSIONS: Final = "no permissions are set: see the setting permissions"
NO_RULES: Final = "no rules are set: see the setting rules"
NO_QUOTAS: Final = "no quotas are set: see the setting quotas"


class DecidingOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated

    def operations(self) -> tuple[Operation, ...]:
        read = partial(Operation, "GET", action=Action.ADMIN_READ)
        again = partial(Operation, "POST", action=Action.ADMIN_WRITE, conflicts=True)
        permissions = partial(read, tag="permissions", conflicts=True)
        return (
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
            again("/permissions/reload", "Read the file of permissions again",
                  partial(self.reload, "/permissions/reload", NO_PERMISSIONS), shape(rules=WHOLE), tag="permissions"),
            again("/quotas/reload", "Read the file of quotas again", partial(self.reload, "/quotas/reload", NO_QUOTAS),
                  shape(entries=WHOLE), tag="quotas"),
            again("/rules/reload", "Read the file of routing rules again",
                  partial(self.reload, "/rules/reload", NO_RULES), shape(rules=WHOLE), tag="rules"),
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

    async def reload(self, name: str, missing: str, call: Call) -> dict[str, Any]:
        """One file alone; an error in it changes nothing, and is the answer."""
        return dict(await self._operated.action(name, missing)())

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


