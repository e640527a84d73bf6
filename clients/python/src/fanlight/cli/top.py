"""`fanlight top`: what a broker is doing now: rates, hot topics, slow consumers; or its users (top_users.py).

The broker counts and never resets; rates are differences between two readings. `figures` makes one page of
them, which is then written as lines, as JSON, or as tables where rich is installed and somebody looks on.
Topics are ranked by their rate now, not by what they had in all.
"""

import argparse
import importlib.util
import json
import sys
import time
from itertools import count
from typing import Any

from . import exits, text
from .http import Views
from .top_users import UserSample, user_figures, user_lines

RATES = (
    ("messages_in", "messages in/s"),
    ("messages_out", "messages out/s"),
    ("bytes_in", "bytes in/s"),
    ("bytes_out", "bytes out/s"),
    ("dropped", "dropped/s"),
)


class CounterSample:
    """One look at the broker."""

    def __init__(self, views: Views, topics: int) -> None:
        self.at = time.monotonic()
        self.stats = views.get("/stats")
        self.topics: list[dict[str, Any]] = views.get("/topics", limit=topics, by="rate").get("topics") or []
        self.slow: list[dict[str, Any]] = views.get("/slow-consumers").get("slow_consumers") or []

    def count(self, name: str) -> float:
        """A counter; `dropped` is the sum of all reasons."""
        if name == "dropped" and name not in self.stats:
            return float(sum(value for key, value in self.stats.items() if key.startswith("dropped_")))
        value = self.stats.get(name, 0)
        return float(value) if isinstance(value, int | float) else 0.0


def figures(before: CounterSample, now: CounterSample) -> dict[str, Any]:
    """The page: rates per second between two readings, and what the later one saw."""
    seconds = max(now.at - before.at, 1e-9)
    # A counter that went down was counted by another broker, started meanwhile.
    rates = {name: max(0.0, now.count(name) - before.count(name)) / seconds for name, _ in RATES}
    # The broker ranks them, for it counts all of them; a broker that was just started has no rates yet: null.
    topics = [{**each, "rate": float(each.get("per_second") or 0)} for each in now.topics]
    return {
        "version": now.stats.get("version"),
        "uptime_seconds": now.stats.get("uptime_seconds"),
        "connections": now.stats.get("connections", 0),
        "subscriptions": now.stats.get("subscriptions", 0),
        "per_second": rates,
        "dropped": now.count("dropped"),
        "topics": topics,
        "slow_consumers": now.slow,
    }


def run(options: argparse.Namespace) -> int:
    views = Views(options.http, options.ca, options.cert, options.key)

    def sample() -> CounterSample | UserSample:
        return UserSample(views) if options.users else CounterSample(views, options.topics)

    pages = 1 if options.once else options.count
    before = sample()
    live = None
    if pages is None and not options.json and sys.stdout.isatty() and importlib.util.find_spec("rich"):
        from .top_rich import Screen

        live = Screen()
    try:
        for _ in count() if pages is None else range(pages):
            time.sleep(options.interval)
            now = sample()
            page = page_of(before, now, options.rows)
            if live is not None:
                live.show(page)
            else:
                print(json.dumps(page) if options.json else "\n".join(lines(page)), flush=True)
            before = now
        return exits.OK
    finally:
        if live is not None:
            live.close()


def page_of(before: CounterSample | UserSample, now: CounterSample | UserSample, rows: int) -> dict[str, Any]:
    if isinstance(before, UserSample) and isinstance(now, UserSample):
        return user_figures(before, now, rows)
    assert isinstance(before, CounterSample)
    assert isinstance(now, CounterSample)
    return figures(before, now)


def lines(page: dict[str, Any]) -> list[str]:
    """The page as text."""
    if "users" in page:
        return user_lines(page)
    rates = page["per_second"]
    out = [
        f"fanlight {page['version'] or '?'}  up {duration(page['uptime_seconds'])}  "
        f"{page['connections']} connections  {page['subscriptions']} subscriptions",
        "  ".join(f"{label} {rates[name]:,.0f}" for name, label in RATES),
    ]
    out += [
        f"  topic {text.shown(str(each.get('topic')))} ({each.get('syntax')}): {each['rate']:,.0f}/s, "
        f"{each.get('messages', 0):,} in all, {each.get('subscribers', 0):,} subscribers"
        for each in page["topics"]
    ]
    out += [
        f"  slow {text.shown(str(each.get('client')))} (connection {each.get('connection')}, "
        f"{each.get('policy')}): {each.get('outbox_bytes', 0):,} bytes wait, "
        f"{each.get('dropped', 0):,} dropped{_because(each.get('reason'))}"
        for each in page["slow_consumers"]
    ]
    return out


def _because(reason: object) -> str:
    return f"; {reason}" if reason else ""


def duration(seconds: object) -> str:
    """Days, hours and minutes; seconds where there is nothing else."""
    if not isinstance(seconds, int | float):
        return "?"
    whole = int(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    return " ".join(parts) or f"{whole}s"
