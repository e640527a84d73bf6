"""The command that makes the tables: its output holds every contender and workload, or says why not."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from fanlight_bench import workloads
from fanlight_matchers import __main__ as command
from fanlight_matchers import collect, literature, threads
from fanlight_matchers.measure import QUICK, compare
from fanlight_matchers.registry import CONTENDERS
from fanlight_matchers.threads import apart, beside, shared
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


def test_w4_is_all_of_w4_and_an_unknown_workload_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command._workloads("W1,W4") == ["W1", "W4a", "W4b", "W4c", "W4d", "W4e", "W4f"]
    assert command.main(["--only", "W9"]) == command.WRONG
    assert "no workload 'W9'; there are W1, " in capsys.readouterr().err


def test_one_long_filter_is_in_w6l_and_makes_no_bitmap_read_more_rows() -> None:
    plain, long = workloads.make("W6", 300), workloads.make("W6L", 300)
    assert long.filters[:-1] == plain.filters
    assert long.filters[-1].count(b".") == 99
    for name in ("bitmap", "bitmap-or"):
        rows = compare(long, [CONTENDERS[name], CONTENDERS["naive"]], QUICK)
        assert len({row.found for row in rows}) == 1, rows


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


@pytest.mark.parametrize("name", ["fanlight", "trie-S", "nats", "matchbox"])
def test_threads_change_and_match_at_once_and_lose_nothing(name: str) -> None:
    work = workloads.make("W1v", 600)
    done = shared(CONTENDERS[name], work, threads=4, reads=500, operations=20_000)
    assert done.per_second > 0
    oracle, after = CONTENDERS["naive"].make(work.syntax), done.matcher
    for id, text in enumerate(work.filters):
        oracle.insert(text, id)
    for topic in work.topics[:300]:
        assert after.match(topic) == oracle.match(topic)


@pytest.mark.parametrize("name", ["fanlight", "naive", "static", "bitmap", "bitmap-or", "trie-S", "matchbox"])
@pytest.mark.parametrize("reads", [500, 900])
def test_readers_and_writers_of_their_own_lose_nothing(name: str, reads: int) -> None:
    work = literature.concurrent()
    done = apart(CONTENDERS[name], work, threads=4, reads=reads, operations=4_000)
    assert (done.threads, done.reads) == (4, reads)
    assert done.per_second > 0
    for at, topic in enumerate(work.topics[:200]):
        assert done.matcher.match(topic) == (literature.HELD + at,)


def test_static_that_knows_the_topics_pays_for_each_of_them_at_a_subscribe() -> None:
    stream = literature.stream()
    known = literature.knowing(CONTENDERS["static"], stream.topics)
    rows = compare(dataclasses.replace(stream, filters=stream.filters[:300]), [known, CONTENDERS["static"]], QUICK)
    assert [row.contender for row in rows] == ["static, topics known", "static"]
    assert rows[0].found == rows[1].found
    assert rows[0].bytes > 2 * rows[1].bytes


def test_the_readers_and_writers_of_a_mix_are_as_its_share_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[threads.Part]] = []
    work = workloads.make("W1", 10)
    monkeypatch.setattr(threads, "_timed", lambda contender, work, reads, parts: asked.append(parts))
    for count, reads, writers in ((2, 500, 1), (16, 500, 8), (2, 900, 1), (12, 900, 1), (16, 900, 2)):
        apart(CONTENDERS["naive"], work, count, reads, 100_000)
        parts = asked.pop()
        changes = [part for part in parts if part.reads == 0]
        assert (len(parts), len(changes)) == (count, writers)
        assert {part.reads for part in parts} == {0, 1_000}
        done = sum(part.operations for part in changes)
        assert done == 100_000 * (1_000 - reads) // 1_000
        assert sum(part.operations for part in parts) - done == pytest.approx(100 * reads, rel=1e-3)


def test_threads_have_all_processors_though_the_run_has_one() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        with collect.all_processors():
            assert os.sched_getaffinity(0) >= before
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("frozen", [False, True])
def test_readers_and_a_writer_are_at_work_at_once(frozen: bool) -> None:
    did = beside(workloads.make("W3", 500), readers=2, batches=5, frozen=frozen)
    assert did.asked == ("FrozenIndex" if frozen else "FilterIndex")
    assert did.topics_per_second > 0
    assert did.changes_per_second > 0
