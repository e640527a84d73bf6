"""`python -m fanlight_bench dashboard`: what an open page of the dashboard costs the broker, of one processor.

    python -m fanlight_bench dashboard                          all pages, 5 rounds: 2 minutes
    python -m fanlight_bench dashboard --pages overview --rounds 1 --duration 1
    python -m fanlight_bench dashboard --connections 10000 --subscriptions 1000000 --rounds 15

A broker runs a scenario of `bench load` (C's: 1,000 topics, 5 wildcard subscribers each). In each round it runs once
alone and once, in turn before or after it, while a client asks what one page asks, as browsers do on one kept
connection. It asks --faster times as often as a page, so that the cost stands out from the noise of the machine, and
the difference of the broker's processor time is divided by that.

`taken` is that difference as a part of one processor, which is what a broker at full speed loses of its throughput:
the median of the rounds. The bar is 0.02. The list of redundant subscriptions, which is made in the background, is
asked for no more often than by a page. With --connections, one broker has as many idle clients beside the scenario,
and the cost of each turn of a page is measured by itself: see dashboard_crowd.py.

The report is JSON on standard output. Exit codes: 0 done, whatever the
figures are; 1 a run failed; 2 the command line.
"""

import argparse
import http.client
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from fanlight_bench.dashboard_crowd import EVERY, measured_all
from fanlight_bench.launch import Broker, byte_code, on_cpu
from fanlight_bench.load.run import run
from fanlight_bench.machine import machine
from fanlight_bench.peers.compare import processors

OK, FAILED, WRONG = 0, 1, 2
BAR = 0.02
PACED = frozenset({"redundant"})  # made in the background, with its own share of the processor: not asked for faster
PAGES = {
    "overview": ("api/v1/history?after=1", "api/v1/overview"),
    "topics": ("api/v1/topics?limit=1000&sort=per_second", "api/v1/retained?limit=1000"),
    "connections": ("api/v1/connections?limit=50&sort=messages_sent&order=desc",),
    "subscriptions": ("api/v1/subscriptions?limit=50&sort=delivered&order=desc",),
    "redundant": ("api/v1/subscriptions?limit=50&redundant=true",),
    "slow": ("api/v1/slow-consumers?limit=200",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    pages = [page for page in options.pages.split(",") if page]
    if unknown := [page for page in pages if page not in PAGES]:
        print(f"there is no page {', '.join(unknown)}, but {', '.join(PAGES)}", file=sys.stderr)
        return WRONG
    if options.connections:
        return crowded(pages, options)
    rows = []
    for page in pages:
        for number in range(options.rounds):
            row: dict[str, Any] = {"page": page, "round": number}
            faster = 1.0 if page in PACED else options.faster
            for opened in (False, True) if number % 2 == 0 else (True, False):
                row |= measured(page if opened else None, options.scenario, options.duration, faster)
            row["taken"] = (row["open_us"] - row["alone_us"]) * row["open"] / 1e6 / faster
            rows.append(row)
            print(f"bench: {json.dumps(row)}", file=sys.stderr, flush=True)
    taken = {page: round(median(row["taken"] for row in rows if row["page"] == page), 5) for page in pages}
    report = {
        "machine": machine(), "scenario": options.scenario, "bar": BAR, "taken": taken,
        "met": all(each <= BAR for each in taken.values()), "runs": rows,
    }
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAILED if any(row.get("faults") for row in rows) else OK


def crowded(pages: Sequence[str], options: argparse.Namespace) -> int:
    """The pages beside very many connections and subscriptions; the exit code."""
    rows = []
    for row in measured_all(
        {page: PAGES[page] for page in pages}, options.scenario, connections=options.connections,
        subscriptions=options.subscriptions, rounds=options.rounds,
        whole_pass=PAGES["redundant"] if options.whole_pass else (),
    ):  # fmt: skip
        rows.append(row)
        print(f"bench: {json.dumps(row)}", file=sys.stderr, flush=True)
    report = {
        "machine": machine(), "scenario": options.scenario, "connections": options.connections,
        "subscriptions": options.subscriptions, "bar": BAR,
        "met": all("error" not in row and row.get("taken", 0.0) <= BAR for row in rows),
        "pages": rows,
    }
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAILED if any("error" in row for row in rows) else OK


def measured(page: str | None, scenario: str, duration: float, faster: float) -> dict[str, Any]:
    """One run, with this page open or without one."""
    broker_cpu, other_cpu = processors()
    paths = PAGES[page] if page else ()
    with (
        Broker(cpu=broker_cpu, environment=byte_code(), http_requests_per_second_max=1_000) as broker,
        on_cpu(other_cpu),
        asking(broker, paths, EVERY / faster) as turns,
    ):
        result = run(scenario, broker.url, duration=duration, warmup=0.5, pids=[broker.pid])
    name = "open" if page else "alone"
    found: dict[str, Any] = {name: result.published_per_second, f"{name}_us": result.broker_us_per_publish}
    if page:
        found["turns"] = len(turns)
    faults = {fault: number for fault, number in result.faults.items() if number}
    return found | ({"faults": faults} if faults else {})


@contextmanager
def asking(broker: Broker, paths: Sequence[str], seconds: float) -> Iterator[list[int]]:
    """Asks these paths again and again in a thread; the sizes of the answers, by turn."""
    ended, turns = threading.Event(), list[int]()
    host, port = broker.addresses["http"]
    connection = http.client.HTTPConnection(host, port, timeout=60)

    def turn() -> None:
        size = 0
        for path in paths:
            connection.request("GET", f"/{path}", headers={"Accept": "application/json"})
            with connection.getresponse() as answer:
                size += len(answer.read())
        turns.append(size)

    def ask() -> None:
        while not ended.wait(seconds):
            turn()

    thread = threading.Thread(target=ask, daemon=True)
    if paths:
        turn()  # the first request imports what HTTP needs
        turns.clear()
        thread.start()
    try:
        yield turns
    finally:
        ended.set()
        if paths:
            thread.join()
        connection.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench dashboard", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--pages", default=",".join(PAGES), metavar="NAME,NAME", help="%(default)s")
    add("--scenario", default="wildcard", help="of `bench load` (%(default)s)")
    add("--rounds", type=int, default=5, metavar="N", help="of each page (%(default)s)")
    add("--duration", type=float, default=2.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--faster", type=float, default=20.0, metavar="N", help="times as often as a page asks (%(default)s)")
    add("--connections", type=int, default=0, metavar="N", help="that are idle beside the scenario (%(default)s)")
    add("--subscriptions", type=int, default=0, metavar="N", help="of these connections (%(default)s)")
    add("--whole-pass", action="store_true", help="with --connections: until all redundant subscriptions are found")
    return parser


if __name__ == "__main__":
    sys.exit(main())
