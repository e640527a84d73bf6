"""`fanlight top` as tables that stay in place, where rich is installed (extra `cli`)."""

from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .text import shown
from .top import RATES, duration
from .top_users import COLUMNS, cells


class Screen:
    def __init__(self) -> None:
        self._live = Live(auto_refresh=False, screen=True)
        self._live.start()

    def show(self, page: dict[str, Any]) -> None:
        self._live.update(tables(page), refresh=True)

    def close(self) -> None:
        self._live.stop()


def tables(page: dict[str, Any]) -> Group:
    if "users" in page:
        return Group(_users(page))
    return Group(_head(page), _rates(page), _topics(page), _slow(page))


def _head(page: dict[str, Any]) -> Text:
    return Text(
        f"fanlight {page['version'] or '?'}   up {duration(page['uptime_seconds'])}   "
        f"{page['connections']} connections   {page['subscriptions']} subscriptions   (Ctrl-C ends)",
        style="bold",
    )


def _rates(page: dict[str, Any]) -> Table:
    table = Table(expand=True)
    for _, label in RATES:
        table.add_column(label, justify="right")
    table.add_row(*(f"{page['per_second'][name]:,.0f}" for name, _ in RATES))
    return table


def _topics(page: dict[str, Any]) -> Table:
    table = Table(title="hot topics", title_justify="left", expand=True)
    table.add_column("topic", overflow="ellipsis", no_wrap=True)
    for label in ("spelling", "per second", "in all", "subscribers"):
        table.add_column(label, justify="right")
    for each in page["topics"]:
        table.add_row(
            Text(shown(str(each.get("topic")))),  # Text: a topic in brackets is no markup
            str(each.get("syntax")),
            f"{each['rate']:,.0f}",
            f"{each.get('messages', 0):,}",
            f"{each.get('subscribers', 0):,}",
        )
    return table


def _slow(page: dict[str, Any]) -> Table:
    table = Table(title="slow consumers", title_justify="left", expand=True)
    for label in ("client", "connection", "policy", "bytes waiting", "dropped", "reason"):
        table.add_column(label)
    for each in page["slow_consumers"]:
        table.add_row(
            Text(shown(str(each.get("client")))),
            str(each.get("connection")),
            str(each.get("policy")),
            f"{each.get('outbox_bytes', 0):,}",
            f"{each.get('dropped', 0):,}",
            Text(str(each.get("reason") or "")),
        )
    return table


def _users(page: dict[str, Any]) -> Table:
    table = Table(title=f"users ({page['total']:,})", title_justify="left", expand=True)
    for title, key in COLUMNS:
        table.add_column(title, justify="left" if key in ("principal", "quota") else "right", no_wrap=True)
    for user in page["users"]:
        table.add_row(*map(Text, cells(user)))  # Text: a name in brackets is no markup
    return table
