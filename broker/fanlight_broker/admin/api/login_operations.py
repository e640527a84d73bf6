"""Log in, who am I, log out."""

from collections.abc import Callable
from typing import Any

from fanlight_broker.admin.api.declared import FLAG, NUMBER, TEXT, Call, Operation, Parameter, Reply, maybe, shape
from fanlight_broker.admin.api.logins import COOKIE, Login, Logins
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.permissions import Action

WHO = shape(
    user=TEXT, anonymous=FLAG, by=TEXT, read=FLAG, write=FLAG, login_required=FLAG, csrf=maybe(TEXT),
    expires_seconds=maybe(NUMBER),
)


class LoginOperations:
    """login_required: has a client to show credentials?"""

    def __init__(self, gatekeeper: Gatekeeper, logins: Logins, *, login_required: Callable[[], bool]) -> None:
        self._gatekeeper, self._logins, self._login_required = gatekeeper, logins, login_required

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation("GET", "/login", "Who the caller is, and what it may do", self.who, WHO, tag="login"),
            Operation("POST", "/login", "Log in: sets a cookie", self.begin, WHO, tag="login", body=(
                Parameter("user", str, "name of the user", required=True, least=1, most=1_024),
                Parameter("password", str, "its password", required=True, most=4_096),
            )),
            Operation("DELETE", "/login", "Log out", self.end, WHO, tag="login"),
        )

    def who(self, call: Call) -> dict[str, Any]:
        cookie = call.request.cookies.get(COOKIE)
        login = None
        if cookie is not None and "Authorization" not in call.request.headers:
            login = self._logins.find(cookie)
        return self._view(call, call.identity, login)

    async def begin(self, call: Call) -> Reply:
        identity = await self._gatekeeper.login(call.request, call.body["user"], call.body["password"])
        if identity.anonymous:  # nobody has to log in, so nothing was checked
            return Reply(self._view(call, identity, None))
        secret, login = self._logins.begin(identity)
        return Reply(self._view(call, identity, login), headers={"Set-Cookie": cookie_of(call, secret)})

    def end(self, call: Call) -> Reply:
        cookie = call.request.cookies.get(COOKIE)
        if cookie is not None:
            self._logins.end(cookie)
        return Reply(
            {**self._view(call, Identity(), None)}, headers={"Set-Cookie": cookie_of(call, "", "Max-Age=0")}
        )

    def _view(self, call: Call, identity: Identity, login: Login | None) -> dict[str, Any]:
        header = call.request.headers.get("Authorization", "")
        by = header.partition(" ")[0].lower() if header else "none"
        if login is not None:
            by = "login"
        elif by == "none" and not identity.anonymous:
            by = "certificate"
        return {
            "user": identity.user, "anonymous": identity.anonymous, "by": by,
            "read": self._may(call, identity, Action.ADMIN_READ),
            "write": self._may(call, identity, Action.ADMIN_WRITE),
            "login_required": self._login_required(), "csrf": login.csrf if login is not None else None,
            "expires_seconds": self._logins.seconds_left(login) if login is not None else None,
        }

    def _may(self, call: Call, identity: Identity, action: Action) -> bool:
        if identity.anonymous and self._login_required():
            return False
        try:
            self._gatekeeper.permit(call.request, identity, action, quiet=True)
        except NotPermitted:
            return False
        return True


def cookie_of(call: Call, value: str, *more: str) -> str:
    secure = ("Secure",) if call.request.secure else ()
    return "; ".join((f"{COOKIE}={value}", "Path=/", "HttpOnly", "SameSite=Strict", *secure, *more))
