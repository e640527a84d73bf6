"""The bars of a comparison: from the right figures, the right way round, and none passed over."""

import pytest

from fanlight_bench.peers import tables
from fanlight_bench.peers.bar import Bar
from fanlight_bench.peers.bars import bars
from fanlight_bench.peers.contenders import CONTENDERS
from fanlight_bench.peers.plan import POLICIES
from tests.bench.peers.reports import report, run


def bar(rows: list[Bar], scenario: str, whose: str, what: str) -> Bar:
    (found,) = [one for one in rows if (one.scenario, one.whose, one.what) == (scenario, whose, what)]
    return found


def test_a_ratio_says_how_many_times_less_processor_time_ours_takes() -> None:
    one = bar(bars(report()), "A", "fanlight-native", "less than NATS on one processor")
    assert one.reached == pytest.approx(3.0)
    assert one.met is True


def test_a_bar_is_met_at_its_limit_and_not_beyond() -> None:
    for cost, met in ((0.075, True), (0.0751, False)):
        rows = bars(report([run("A", "nats-1cpu"), run("A", "fanlight-mqtt", us_per_delivery=cost)]))
        assert bar(rows, "A", "fanlight-mqtt", "less than NATS on one processor").met is met


def test_both_protocols_are_asked_for_the_same() -> None:
    rows = bars(report())
    native = {(one.scenario, one.what, one.limit) for one in rows if one.whose == "fanlight-native"}
    mqtt = {(one.scenario, one.what, one.limit) for one in rows if one.whose == "fanlight-mqtt"}
    # Of the policies one protocol is enough; MQTT 3.1.1 has no selectors, and MQTT 5 stands for it.
    assert {scenario for scenario, _, _ in native - mqtt} == {*POLICIES, "K", "KX"}
    assert {what for _, what, _ in mqtt - native} == {
        "less than Mosquitto", "to QoS 1", "to the same not retained", "from the start to listening", "memory at rest",
        "an idle connection, of 10,000", "connects a second, of clients that stay",
        "connects a second, of clients that go again", "a subscription, of a million",
        "a million loaded, processor time",
    }  # fmt: skip
    assert {scenario for scenario, what, _ in mqtt - native if what == "less than Mosquitto"} == {"Q2"}


def test_selectors_are_compared_by_message_with_the_same_broker_that_evaluates_each() -> None:
    costs = {"K": 2.0, "KR": 30.0, "KX": 26.0, "KXR": 20.0}
    rows = bars(report([run(letter, "fanlight-mqtt5", us_per_message=cost) for letter, cost in costs.items()]))
    mine = [one for one in rows if one.whose == "fanlight-mqtt5" and one.scenario[0] == "K"]
    reached = {one.key: (one.reached, one.met) for one in mine}
    assert reached == {
        "K, fanlight-mqtt5: a message, 1,000 selectors of its topic": (2.0, True),
        "K, fanlight-mqtt5: less than evaluating each selector": (15.0, True),
        "KX, fanlight-mqtt5: to evaluating each selector": (1.3, True),
    }


def test_the_best_peer_is_whoever_was_best_in_these_runs_and_never_the_floor() -> None:
    runs = [
        run("E", "fanlight-mqtt", p50_us=100.0, p99_us=150.0), run("E", "nats", p50_us=100.0, p99_us=100.0),
        run("E", "mosquitto", p50_us=80.0, p99_us=200.0), run("E", "null-mqtt", p50_us=1.0, p99_us=1.0),
    ]  # fmt: skip
    rows = bars(report(runs))
    assert bar(rows, "E", "fanlight-mqtt", "p50, to the best peer").reached == pytest.approx(1.25)
    assert bar(rows, "E", "fanlight-mqtt", "p99, to the best peer").reached == pytest.approx(1.5)


def test_what_was_not_measured_is_named_and_neither_met_nor_missed() -> None:
    rows = bars(report([run("A", "fanlight-mqtt")]))
    assert len(rows) == len(bars(report()))
    assert all(one.met is None for one in rows)
    assert {row[-1] for row in tables.bars(rows)[1:]} == {"not measured"}


def test_an_absolute_bar_has_its_unit() -> None:
    rows = bars(report())
    loaded = bar(rows, "G", "fanlight-mqtt", "a million loaded, processor time")
    assert (loaded.reached, loaded.met) == (7.0, False)
    shown = next(row for row in tables.bars(rows) if row[2] == loaded.what)
    assert shown[3:] == ("≤ 6 s", "7 s", "**not met**")


def test_throughput_that_a_disturbance_takes_is_a_loss_in_percent() -> None:
    runs = [run("W0", "fanlight-mqtt", messages_per_second=4e4), run("W", "fanlight-mqtt", messages_per_second=3e4)]
    one = bar(bars(report(runs)), "W", "fanlight-mqtt", "throughput of the others lost to one slow subscriber")
    assert one.reached == pytest.approx(25.0)
    assert one.met is False


def test_throughput_under_churn_is_that_of_turns_with_and_without_it_in_one_run() -> None:
    rows = bars(report([run("R", "fanlight-native", throughput_kept=0.9)]))
    one = bar(rows, "R", "fanlight-native", "throughput lost under churn")
    assert one.reached == pytest.approx(10.0)
    assert one.met is True


@pytest.mark.parametrize(
    ("letter", "warm", "what", "cost", "reached"),
    [
        ("T70k", ("T1k", 0.5), "to twice the warm figure plus 1 µs", 1.0, 0.5),
        ("T1M", ("T1k", 0.5), "to twice the warm figure plus 1 µs", 4.0, 2.0),
        ("CX100k", ("CX", 0.1), "to twice the warm figure plus 1 µs", 0.6, 0.5),
        ("AM", ("A", 0.05), "to one topic", 0.1, 2.0),
        ("P", ("P0", 0.5), "to the same not retained", 1.0, 2.0),
        ("Q2", ("D", 0.5), "to QoS 1", 2.0, 4.0),
    ],
)
def test_a_hard_row_is_compared_with_the_one_that_flatters(
    letter: str, warm: tuple[str, float], what: str, cost: float, reached: float
) -> None:
    runs = [
        run(letter, "fanlight-mqtt", us_per_delivery=cost), run(warm[0], "fanlight-mqtt", us_per_delivery=warm[1]),
    ]  # fmt: skip
    assert bar(bars(report(runs)), letter, "fanlight-mqtt", what).reached == pytest.approx(reached)


def test_memory_of_those_who_do_not_read_is_what_came_to_the_memory_at_rest() -> None:
    mib = 1 << 20
    rows = bars(report([run("Wo", "fanlight-native", resident_bytes=612 * mib, resting_bytes=100 * mib)]))
    assert bar(rows, "Wo", "fanlight-native", "memory, to the limit of all outboxes").reached == pytest.approx(0.5)


def test_keys_under_which_explanations_are_kept_are_all_different() -> None:
    keys = [one.key for one in bars(report())]
    assert len(set(keys)) == len(keys)


def test_a_bar_asks_only_contenders_that_there_are() -> None:
    assert {one.whose for one in bars(report())} <= set(CONTENDERS)


def test_one_message_a_write_is_asked_to_be_below_nats_and_mosquitto() -> None:
    runs = [
        run("E", "fanlight-mqtt", p50_us=90.0), run("E", "nats-1cpu", p50_us=100.0), run("E", "mosquitto", p50_us=80.0),
        run("E", "nats", p50_us=1.0),
    ]  # fmt: skip
    one = bar(bars(report(runs)), "E", "fanlight-mqtt", "p50, to NATS and Mosquitto")
    assert one.reached == pytest.approx(90 / 80)
    assert one.met is False


def test_large_payloads_and_the_longest_pause_have_bars() -> None:
    runs = [run("H", "fanlight-mqtt", us_per_delivery=12.5), run("H", "null-mqtt", us_per_delivery=10.0)]
    rows = bars(report([*runs, run("LT", "fanlight-mqtt", pause_ms=0.3)]))
    assert bar(rows, "H", "fanlight-mqtt", "to the null broker").reached == pytest.approx(1.25)
    assert bar(rows, "LT", "fanlight-mqtt", "the pause of another client").met is True
