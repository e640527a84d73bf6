"""`fanlight top --users`: which user publishes and gets how much, and who is held back or refused.

The broker counts for each user or address (/quotas); rates are differences between two readings. Who has connected
since the first of them has counted from 0.
"""

import time
from typing import Any

from . import text
from .http import Views

READ_MAX = 500  # rows of each reading: 250 kB
COUNTED = ("messages_in", "messages_out", "bytes_in", "bytes_out", "held", "refused")
COLUMNS = (
    ("user", "principal"), ("in/s", "messages_in"), ("out/s", "messages_out"), ("bytes in/s", "bytes_in"),
    ("bytes out/s", "bytes_out"), ("connections", "connections"), ("sessions", "sessions"), ("of limit", "part"),
    ("held", "held"), ("refused", "refused"), ("quota", "quota"),
)  # fmt: skip
RATES = frozenset({"messages_in", "messages_out", "bytes_in", "bytes_out"})


class UserSample:
    """One look at the users with most messages in and out: READ_MAX of each."""

    def __init__(self, views: Views) -> None:
        self.at = time.monotonic()
        self.rows: dict[str, dict[str, Any]] = {}
        self.total = 0
        for order in ("messages_in", "messages_out"):
            page = views.get("/quotas", by=order, limit=READ_MAX)
            self.total = int(page.get("total") or 0)
            for row in page.get("quotas") or []:
                self.rows.setdefault(str(row.get("principal")), row)

    def before(self, principal: str, row: dict[str, Any]) -> dict[str, Any]:
        """What it had counted, whose row is known now. Who was among too many had counted as much: nothing is known."""
        found = self.rows.get(principal)
        return found if found is not None else {} if len(self.rows) >= self.total else row


def user_figures(before: UserSample, now: UserSample, rows: int) -> dict[str, Any]:
    """The page: the `rows` users with most messages a second, in and out together."""
    seconds = max(now.at - before.at, 1e-9)
    users = [_user(before.before(name, row), row, seconds) for name, row in now.rows.items()]
    users.sort(key=lambda user: (-user["per_second"]["messages_in"] - user["per_second"]["messages_out"],
                                 -user["part"], user["principal"]))  # fmt: skip
    return {"users": users[:rows], "total": now.total}


def _user(before: dict[str, Any], row: dict[str, Any], seconds: float) -> dict[str, Any]:
    def count(name: str) -> float:
        # Below 0: another connection of this user has ended, or the broker has started again.
        return max(0.0, float(row.get(name) or 0) - float(before.get(name) or 0)) / seconds

    return {
        "principal": str(row.get("principal")),
        "quota": row.get("quota"),
        "part": float(row.get("part") or 0),
        "connections": row.get("connections") or 0,
        "sessions": row.get("sessions") or 0,
        "held": row.get("held") or 0,
        "refused": row.get("refused") or 0,
        "per_second": {name: count(name) for name in COUNTED},
        "quantities": row.get("quantities") or {},
        "rates": row.get("rates") or {},
    }


def cells(user: dict[str, Any]) -> list[str]:
    """A user's row of the table, as COLUMNS are."""
    return [_cell(user, key) for _, key in COLUMNS]


def _cell(user: dict[str, Any], key: str) -> str:
    if key in RATES:
        return f"{user['per_second'][key]:,.0f}"
    if key == "part":
        return f"{100 * user['part']:.0f}%"
    value = user[key]
    return f"{value:,}" if isinstance(value, int) else text.shown(str(value or "-"))


def user_lines(page: dict[str, Any]) -> list[str]:
    """The page as a table of text."""
    rows = [[title for title, _ in COLUMNS], *(cells(user) for user in page["users"])]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    out = [
        "  ".join(
            cell.ljust(width) if key in ("principal", "quota") else cell.rjust(width)
            for cell, width, (_, key) in zip(row, widths, COLUMNS, strict=True)
        ).rstrip()
        for row in rows
    ]
    if len(page["users"]) < page["total"]:
        out.append(f"... and {page['total'] - len(page['users'])} more")
    return out
