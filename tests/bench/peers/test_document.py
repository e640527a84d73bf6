"""docs/benchmarks.md and the README: made from a report, and what was written by hand is kept."""

import re
from pathlib import Path

import pytest

from fanlight_bench import reporting
from fanlight_bench.peers import bars, document
from fanlight_bench.peers.contenders import CONTENDERS
from fanlight_bench.peers.plan import ASKED
from tests.bench.peers.reports import report, run

PAGE = (document.ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
README = (document.ROOT / "README.md").read_text(encoding="utf-8")
MISSED = "A, fanlight-mqtt: less than NATS on one processor"


def missing_a_bar() -> dict[str, object]:
    return report([run("A", "nats-1cpu"), run("A", "fanlight-mqtt", us_per_delivery=0.1)])


def test_every_block_is_in_one_of_the_documents_once() -> None:
    used = [match[2] for text in (PAGE, README) for match in reporting.BLOCK.finditer(text)]
    assert sorted(used) == sorted([*document.BLOCKS, "reasons"])


def test_made_twice_it_is_the_same() -> None:
    once = document.rewritten(PAGE, report())
    assert once != PAGE or "No comparison" not in PAGE
    assert document.rewritten(once, report()) == once


def test_it_has_every_contender_every_scenario_and_every_bar() -> None:
    made = document.rewritten(PAGE, report())
    for name in CONTENDERS:
        assert f"| {name} | " in made
    for letter, asked in ASKED.items():
        assert f"### {letter}: {asked.title}" in made
    for bar in bars.bars(report()):
        assert f"| {bar.scenario} | {bar.whose} | {bar.what} |" in made
    assert "* amqtt in G: it would take an hour." in made
    assert "3 interleaved rounds of 2 s" in made


def test_a_bar_that_is_missed_has_a_place_for_its_explanation() -> None:
    made = document.rewritten(PAGE, missing_a_bar())
    assert f"**{MISSED}** (1.5x, at least 2x required)" in made
    assert f"<!-- why: {MISSED} -->\n{document.UNEXPLAINED}\n<!-- end why -->" in made


def test_an_explanation_outlives_a_new_report_and_the_day_on_which_the_bar_is_met() -> None:
    why = "The kernel takes it:\n\n* 60 % sendmsg\n* <!-- a comment --> and more"
    written = document.rewritten(PAGE, missing_a_bar()).replace(document.UNEXPLAINED, why)
    again = document.rewritten(written, missing_a_bar())
    assert again == written
    met = document.rewritten(written, report([run("A", "nats-1cpu"), run("A", "fanlight-mqtt")]))
    assert f"**{MISSED}**: met or not measured in these runs" in met
    assert why in met
    assert document.rewritten(met, missing_a_bar()) == written


def test_a_place_that_nobody_filled_goes_when_the_bar_is_met() -> None:
    empty = document.rewritten(PAGE, missing_a_bar())
    met = document.rewritten(empty, report([run("A", "nats-1cpu"), run("A", "fanlight-mqtt")]))
    assert f"<!-- why: {MISSED} -->" not in met
    assert "All goals that were measured are met." in met


def test_a_configuration_that_two_contenders_share_is_printed_once() -> None:
    made = document.rewritten(PAGE, report())
    assert made.count("fanlight 1.2\n\n```text\nlisten: PORT\n```") == 1


def test_the_readme_shows_the_chart_and_where_all_figures_are() -> None:
    made = document.rewritten(README, report())
    assert re.search(r"!\[[^]]+\]\(docs/benchmarks-chart\.svg\)", made)
    assert "(docs/benchmarks.md)" in made
    assert document.rewritten(made, report()) == made


def test_a_block_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError):
        document.rewritten("<!-- made: weather -->\n<!-- end -->", report())


def test_the_plots_are_the_same_each_time_have_no_date_and_show_everybody() -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_bench.peers import plots

    assert set(plots.MARKS) == set(CONTENDERS)
    drawn = plots.plots(report())
    assert drawn == plots.plots(report())
    assert b"<dc:date>" not in b"".join(drawn.values())
    for name in CONTENDERS:
        assert f">{name}<".encode() in drawn["benchmarks-cpu.svg"]
    shown = re.findall(r"!\[[^]]+\]\((?:docs/)?([\w-]+\.svg)\)", document.rewritten(PAGE + README, report()))
    assert sorted(shown) == sorted(drawn)


def test_the_readmes_chart_has_a_row_where_we_do_not_shine_and_few_brokers() -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_bench.peers import plots

    assert set(plots.CHART) < set(ASKED)
    chart = plots.plots(report())["benchmarks-chart.svg"]
    assert all(words.encode() in chart for words in plots.CHART.values())
    assert {"B1", "T1M"} < set(plots.CHART)  # the kernel's work, and topics that are not remembered
    assert b">mosquitto<" in chart
    assert b">null-native<" not in chart


def test_plots_of_a_report_of_one_run_are_drawn_too() -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_bench.peers import plots

    assert set(plots.plots(report([run("A", "nats")]))) == set(plots.plots(report()))


def test_a_contender_of_an_older_file_is_drawn_and_listed() -> None:
    pytest.importorskip("matplotlib", reason="the plots need it")
    from fanlight_bench.peers import plots

    older = report([run("A", "nats") | {"contender": "aedes"}])
    older["contenders"]["aedes"] = older["contenders"]["nats"] | {"title": "aedes"}
    assert b">aedes<" in plots.plots(older)["benchmarks-cpu.svg"]
    assert "| aedes | " in document.rewritten(PAGE, older)


def test_the_documents_are_rewritten_where_they_lie(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE, encoding="utf-8")
    assert document.rewrite(report(), page)
    assert not document.rewrite(report(), page)
    assert page.read_text(encoding="utf-8") == document.rewritten(PAGE, report())
