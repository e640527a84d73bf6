"""Print grafana/fanlight.json, the board for Grafana: `make board`. The table below is what to change.

A panel is a title, a unit, a sentence that says what to look for, and its queries with the names of their lines.
"""

import json
import sys
from typing import Any, Final, NamedTuple

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT = 8, 7  # of a panel; a row is 24 wide
# Of the brokers that are chosen at the top of the board.
I: Final = 'instance=~"$instance"'  # noqa: E741 - it stands in each query


class Panel(NamedTuple):
    title: str
    unit: str
    text: str
    queries: dict[str, str]  # name of a line -> PromQL


def rate(name: str, *by: str, more: str = "") -> str:
    """A second, of a counter, summed over all labels but `by`."""
    return f"sum by ({', '.join(('instance', *by))}) (rate(fanlight_{name}_total{{{I}{more}}}[$__rate_interval]))"


def gauge(name: str) -> str:
    return f"fanlight_{name}{{{I}}}"


def part(used: str, limit: str) -> str:
    return f"{used} / on (instance) fanlight_limit_{limit}{{{I}}}"


def quantile(fraction: float, name: str) -> str:
    rates = f"rate(fanlight_{name}_bucket{{{I}}}[$__rate_interval])"
    return f"histogram_quantile({fraction}, sum by (instance, le) ({rates}))"


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "Traffic": (
        Panel("Messages in", "msg/s", "Published by clients.", {"{{protocol}}": rate("messages_in", "protocol")}),
        Panel("Messages out", "msg/s", "Delivered.", {"{{protocol}}": rate("messages_out", "protocol")}),
        Panel("Bytes", "Bps", "Frames, both ways.", {"in": rate("bytes_in"), "out": rate("bytes_out")}),
        Panel("Connections", "short", "Open ones, by protocol.", {
            "{{protocol}}": f"sum by (instance, protocol) (fanlight_connections{{{I}}})",
        }),
        Panel("Dropped, by reason", "msg/s", "Should be empty: what subscribers did not get.", {
            "{{reason}}": rate("messages_dropped", "reason"),
        }),
        Panel("To nobody", "msg/s", "Messages without a subscriber, or of which no selector was true.", {
            "no subscriber": rate("messages_unroutable"), "no selector true": rate("messages_filtered"),
        }),
    ),
    "How much is left": (
        Panel("Used of the limits", "percentunit", "At 100 % what is new is refused, with an error of the protocol.", {
            "connections": part(f"sum by (instance) (fanlight_connections{{{I}}})", "connections"),
            "sessions": part(gauge("sessions"), "sessions"),
            "subscriptions": part(gauge("subscriptions"), "subscriptions"),
            "retained messages": part(gauge("retained_messages"), "retained_messages"),
            "stored bytes": part(gauge("stored_bytes"), "stored_bytes"),
            "unsent bytes": part(gauge("outbox_bytes"), "outboxes_bytes"),
            "queues": part(gauge("queues"), "queues"),
            "open files": f"process_open_fds{{{I}}} / on (instance) process_max_fds{{{I}}}",
        }),
        Panel("Memory", "bytes", "Of the process, and what it counts itself.", {
            "process": f"process_resident_memory_bytes{{{I}}}", "stored": gauge("stored_bytes"),
            "unsent": gauge("outbox_bytes"), "subscriptions": gauge("subscription_bytes"),
            "routes": gauge("route_bytes"),
        }),
        Panel("Processor", "percentunit", "The broker uses one core: 100 % is all it can.", {
            "{{instance}}": f"rate(process_cpu_seconds_total{{{I}}}[$__rate_interval])",
        }),
    ),
    "How quick": (
        Panel("Delay of the loop", "s", "Everybody waits so long. 100 ms is much.", {
            "99 %": quantile(0.99, "loop_lag_seconds"), "median": quantile(0.5, "loop_lag_seconds"),
        }),
        Panel("Syncs of the store", "s", "Acknowledgements wait for them.", {
            "99 %": quantile(0.99, "store_sync_seconds"), "median": quantile(0.5, "store_sync_seconds"),
        }),
        Panel("Routes", "short", "Messages whose route was known, and those that were matched.", {
            "known": rate("route_hits"), "matched": rate("route_misses"),
        }),
    ),
    "Who falls behind": (
        Panel("Slow consumers", "short", "New ones a second, and those that were disconnected.", {
            "slow": rate("slow_consumers"), "disconnected": rate("slow_consumers_disconnected"),
        }),
        Panel("Publishers held back", "short", "On average at a time; why, is in docs/state.md.", {
            "held": rate("publishers_held_seconds"),
        }),
        Panel("Queues: messages", "short", "The ten longest.", {"{{queue}}": f"topk(10, {gauge('queue_depth')})"}),
        Panel("Queues: age of the oldest", "s", "How long it waits.", {
            "{{queue}}": f"topk(10, {gauge('queue_age_seconds')})",
        }),
        Panel("Dead letters", "msg/s", "What consumers gave up on.", {"dead letters": rate("dead_letters")}),
        Panel("Sessions", "short", "Kept for clients that are away.", {
            "all": gauge("sessions"), "away": gauge("sessions_away"),
        }),
    ),
    "What is refused": (
        Panel("Permissions", "short", "Denied a second, by group and action.", {
            "{{group}}: {{action}}": rate("permission_group_denials", "group", "action"),
        }),
        Panel("Quotas", "short", "Waits and refusals a second, by entry of the file.", {
            "{{quota}}: waits": rate("quota_holds", "quota"), "{{quota}}: refused": rate("quota_refused", "quota"),
        }),
        Panel("Logins", "short", "A second.", {"accepted": rate("logins"), "failed": rate("logins_failed")}),
    ),
    "Disk": (
        Panel("Store", "bytes", "Its files, what is needed of them, and what is free.", {
            "files": gauge("store_bytes"), "needed": gauge("store_live_bytes"), "free": gauge("store_free_bytes"),
        }),
        Panel("Store refuses", "short", "1 while what needs the store is refused.", {
            "{{instance}}": gauge("store_refusing"),
        }),
        Panel("Certificate expires in", "s", "Of the TLS ports; empty without TLS.", {
            "{{instance}}": f"fanlight_certificate_expires_timestamp_seconds{{{I}}} - time()",
        }),
    ),
}


def panel_of(each: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    targets = [
        {"datasource": SOURCE, "expr": query, "legendFormat": name, "refId": chr(ord("A") + index)}
        for index, (name, query) in enumerate(each.queries.items())
    ]
    defaults = {"unit": each.unit, "min": 0, "custom": {"fillOpacity": 10, "showPoints": "never"}}
    return {
        "type": "timeseries", "id": number, "title": each.title, "description": each.text, "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT}, "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def board() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    number, y = 1, 0
    for title, row in ROWS.items():
        panels.append({
            "type": "row", "id": number, "title": title, "collapsed": False, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
        })
        number, y = number + 1, y + 1
        for index, each in enumerate(row):
            panels.append(panel_of(each, number, index % 3 * WIDTH, y + index // 3 * HEIGHT))
            number += 1
        y += -(-len(row) // 3) * HEIGHT
    instances = {"query": "label_values(fanlight_build_info, instance)", "refId": "instances"}
    choices = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance", "label": "Broker", "type": "query", "datasource": SOURCE, "refresh": 2, "multi": True,
            "includeAll": True, "query": instances,
        },
    ]
    restarts = {
        "name": "Restarts", "enable": True, "iconColor": "red", "datasource": SOURCE, "titleFormat": "restarted",
        "expr": f"changes(process_start_time_seconds{{{I}}}[1m]) > 0",
    }
    return {
        "title": "Fanlight", "uid": "fanlight", "tags": ["fanlight"], "schemaVersion": 39, "version": 1,
        "editable": True, "refresh": "10s", "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": choices}, "annotations": {"list": [restarts]}, "panels": panels,
    }


if __name__ == "__main__":
    json.dump(board(), sys.stdout, indent=1)
    print()
