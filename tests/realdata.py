"""Real topics for tests: market, transit and device data, as the messages a broker would carry.

The files are found by tests/require.py: in FANLIGHT_REAL_DATA, in ../shared/data beside the checkout, or else, as
samples, in tests/data.
"""

import csv
import gzip
import json
from functools import cache

from tests import require

__all__ = ["device_topics", "listings", "stock_topics", "transit_topics"]


@cache
def listings() -> tuple[tuple[str, str], ...]:
    """(ticker, exchange in lower case) of every listed US security: 13,113 of them, `BRK.B` among them."""
    path = require.data("market") / "us_listings.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return tuple((row["ticker"], row["exchange"].lower()) for row in csv.DictReader(file))


def stock_topics(separator: str) -> list[str]:
    """`stock/<exchange>/<ticker>`, one a security."""
    return [separator.join(("stock", exchange, ticker)) for ticker, exchange in listings()]


@cache
def transit_topics() -> tuple[str, ...]:
    """`transit/austin/<route>/<vehicle>`, distinct, of one real day; in MQTT spelling."""
    path = require.data("transit") / "austin_vehicles_2017-03-21.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        pairs = {(row["route_id"], row["vehicle_id"]) for row in csv.DictReader(file)}
    return tuple(sorted(f"transit/austin/{route}/{vehicle}" for route, vehicle in pairs))


@cache
def device_topics() -> tuple[tuple[str, ...], ...]:
    """(home, site, room, model, subdevice type, item), the words of what real Zigbee devices report.

    Model names hold spaces, dots, slashes and non-ASCII letters, so words, not a spelling of them.
    """
    path = require.data("devices") / "zigbee_catalog.jsonl.gz"
    topics = set()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            device = json.loads(line)
            site, room = f"site{number % 7}", f"room{number % 11}"
            for model in device["models"]:
                for part in device["subdevices"]:
                    topics |= {
                        ("home", site, room, model, part["type"], item)
                        for item in part["items"]
                        if item.startswith("state/")
                    }
    return tuple(sorted(topics))
