"""The command that makes the tables: its output holds every contender and workload, or says why not."""

import json
import subprocess
import sys

import pytest

from fanlight_bench import workloads
from fanlight_matchers.measure import QUICK, compare
from fanlight_matchers.registry import CONTENDERS
from fanlight_matchers.threads import beside, shared
from matchcore.reference import matches


def test_the_quick_run_measures_every_contender_that_can_hold_the_filters() -> None:
    command = [sys.executable, "-m", "fanlight_matchers", "--quick", "--only", "W1v,W2,W4f"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert {(row["workload"], row["contender"]) for row in report["workloads"]} == {
        (work, name) for work in ("W1v 300", "W2 300", "W4f") for name in CONTENDERS
    }
    for row in report["workloads"]:
        assert row["reason"] or (row["held"] > 0 and row["call"] > 0), row
    by_name = {row["contender"]: row for row in report["workloads"] if row["workload"] == "W2 300"}
    assert by_name["bitmap"]["skipped"] > 0  # `#` in the middle
    assert by_name["trie-I"]["to_trie_i"] == pytest.approx(1)
    assert {row["threads"] for row in report["threads"]} == {1, 2}


def test_all_contenders_find_as_much() -> None:
    """Those that can hold all filters, and give each id once a filter, in the same workload."""
    once = [CONTENDERS[name] for name in ("fanlight", "naive", "trie-I", "static", "dfa")]
    for name in ("W1", "W2", "W3", "W4c"):
        rows = compare(workloads.make(name, 300), once, QUICK)
        assert len({row.found for row in rows}) == 1, rows


def test_workloads_are_the_same_each_time_and_distinct() -> None:
    for name in (*workloads.REALISTIC, *workloads.ADVERSARIAL):
        work = workloads.make(name, 400)
        assert work == workloads.make(name, 400)
        assert len(set(work.filters)) == len(work.filters) >= 120


def test_half_of_the_topics_of_w4f_end_as_a_filter_does() -> None:
    work = workloads.make("W4f")
    sample = work.topics[:40]
    found = [any(matches(filter, "amqp", topic, "amqp") for filter in work.filters) for topic in sample]
    assert not any(found[::2])
    assert any(found[1::2])


@pytest.mark.parametrize("name", ["fanlight", "mutex", "matchbox"])
def test_threads_change_and_match_at_once_and_lose_nothing(name: str) -> None:
    work = workloads.make("W1v", 600)
    done = shared(CONTENDERS[name], work, threads=4, reads=500, operations=20_000)
    assert done.per_second > 0
    oracle, after = CONTENDERS["naive"].make(work.syntax), done.matcher
    for id, text in enumerate(work.filters):
        oracle.insert(text, id)
    for topic in work.topics[:300]:
        assert after.match(topic) == oracle.match(topic)


@pytest.mark.parametrize("frozen", [False, True])
def test_readers_and_a_writer_are_at_work_at_once(frozen: bool) -> None:
    did = beside(workloads.make("W3", 500), readers=2, batches=5, frozen=frozen)
    assert did.asked == ("FrozenIndex" if frozen else "FilterIndex")
    assert did.topics_per_second > 0
    assert did.changes_per_second > 0
