"""The page of a job: what it says is escaped and bounded, and the page allows itself nothing but its own scripts.

How it looks, and what a reader can do with it: tests/dashboard/test_reports.py.
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fanlight_spark.jobs import charts
from fanlight_spark.jobs.charts import Candle, Mark
from fanlight_spark.jobs.report import CHARTS_BYTES_MAX, Report
from scripts import bundle_charts

EVIL = '<script>alert(1)</script><!--"&\x00\x1b[31m'
START = datetime(2026, 11, 21, 20, tzinfo=UTC)


SCRIPT = re.compile(r'<script( type="application/json")?>(.*?)</script>', re.DOTALL)


class Page(HTMLParser):
    """The tags of a page without its scripts, its text, its scripts, and the data of its charts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts = [text for kind, text in SCRIPT.findall(html) if not kind]
        self.data = [text for kind, text in SCRIPT.findall(html) if kind]
        self.feed(re.sub(r"<style>.*?</style>", "", SCRIPT.sub("", html), flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def a_report() -> Report:
    report = Report(EVIL, EVIL, made=datetime(2026, 11, 21, tzinfo=UTC))
    report.answer(EVIL, found=True)
    report.facts([(EVIL, EVIL)])
    report.section(EVIL)
    report.say(EVIL)
    report.table([EVIL], [(EVIL,)], EVIL)
    report.chart(charts.bars([(EVIL, 1.0)], EVIL), EVIL)
    marks = [Mark(1, 2, EVIL)]
    report.chart(charts.lines({EVIL: [(1, 2), (2, 3)], "other": [(1, 1)]}, x=EVIL, y=EVIL, marks=marks), EVIL)
    report.chart(charts.candles([Candle(EVIL, 1, 2, 0, 1)], EVIL), EVIL)
    return report


def test_whatever_came_over_the_network_is_text() -> None:
    page = Page(a_report().html())
    assert page.text.count("<script>alert(1)</script>") == 14
    assert not set(page.text) & {"\x00", "\x1b"}
    assert len(page.data) == 3
    for data in page.data:
        assert "<" not in data
        assert "alert(1)" in data
        json.loads(data)


def test_a_page_asks_for_nothing_and_allows_itself_its_own_two_scripts() -> None:
    html = a_report().html()
    page = Page(html)
    assert not {"img", "link", "iframe", "object", "base"} & {tag for tag, _ in page.tags}
    assert not [key for _, told in page.tags for key in told if key in ("src", "href") or key.startswith("on")]
    assert "url(" not in html[: html.index("<body>")]
    assert len(page.scripts) == 2
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts]
    wanted = "default-src 'none'; style-src 'unsafe-inline'; script-src " + " ".join(f"'sha256-{h}'" for h in hashes)
    assert ("meta", wanted) in [(tag, told.get("content")) for tag, told in page.tags]
    assert not re.search(r"\beval\(|new Function", "".join(page.scripts))


def test_a_page_without_a_chart_has_no_script() -> None:
    report = Report("t")
    report.answer("There are none.", found=False)
    html = report.html()
    assert "<script" not in html
    assert '<p class="answer good">There are none.</p>' in html
    assert len(html) < 8_000


def test_the_answer_stands_above_all() -> None:
    html = a_report().html()
    assert html.index('class="answer found"') < html.index("<dl>") < html.index("<table>") < html.index("<figure")


def test_a_page_stays_below_a_megabyte_and_says_what_it_leaves_out() -> None:
    report = Report("t")
    points = [(START + timedelta(seconds=at), at * 1.234567) for at in range(20_000)]
    lines = charts.lines({f"line {name}": points for name in range(8)})
    candles = charts.candles(Candle(f"{at}", 1.234567, 2.345678, 0.123456, 1.234567, 1e9) for at in range(1_000))
    for number in range(30):
        report.chart(lines, f"chart {number}")
        report.chart(candles, f"candles {number}")
        report.table(["n"] * 6, [("☃" * 5_000,) * 6] * 20)
    html = report.html()
    assert len(html.encode()) < 1_000_000
    assert sum(len(data) for data in Page(html).data) > CHARTS_BYTES_MAX / 2
    assert "The first 20;" not in html
    assert report.charts_left_out == html.count("there was no room left on the page") > 0


def test_a_table_shows_the_first_rows_and_says_what_it_leaves_out() -> None:
    report = Report("t")
    report.table(["n"], ((n,) for n in range(5_000)), rows_max=3)
    report.table(["n"], [(1,), (2,)], total=9)
    report.table(["n"], [])
    text = Page(report.html()).text
    assert "The first 3; there are more." in text
    assert "The first 2 of 9." in text
    assert "There are none." in text
    assert report.html().count("<td") == 5
    assert report.html().count("<table") == 2  # an empty one is a sentence


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"), (True, "yes"), (1_234_567, "1,234,567"), (0.12345, "0.1235"), (12_345.6, "12,346"),
        (datetime(2026, 11, 21, 20, 5), "2026-11-21 20:05"), (b"a\xff", "a\ufffd"), ("x" * 65_000, "x" * 60 + "…"),
    ],
)  # fmt: skip
def test_cells_are_as_people_read_them(value: object, shown: str) -> None:
    report = Report("t")
    report.table(["column"], [(value,)])
    assert shown in report.html()
    assert len(report.html()) < 12_000


def test_a_page_is_written_whole_even_where_a_topic_is_no_text(tmp_path: Path) -> None:
    report = Report("a\udcff")
    report.chart(charts.bars([("b\udcff", 1)]), "bars")
    report.write(tmp_path / "new" / "report.html")
    html = (tmp_path / "new" / "report.html").read_bytes()
    assert "<h1>a\ufffd</h1>".encode() in html
    assert b"\\udcff" not in html
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


# -- charts as data --------------------------------------------------------------------------------------------------


def line(chart: charts.Chart, number: int = 0) -> list[tuple[float, float | None]]:
    series = chart.data["series"][number]
    return list(zip(series.get("x", chart.data["x"]["values"]), series["y"], strict=True))


def test_a_line_is_broken_where_nothing_was() -> None:
    minute = timedelta(minutes=1)
    points = [(START + minute * at, float(at)) for at in (0, 1, 2, 7, 8)]
    at = [charts.place_of(START + minute * number) for number in range(9)]
    found = line(charts.lines({"": points}, step=minute))
    assert found == [(at[0], 0), (at[1], 1), (at[2], 2), (at[3], None), (at[7], 7), (at[8], 8)]
    assert [y for _, y in line(charts.lines({"": points}))] == [0, 1, 2, 7, 8]


def test_what_is_not_finite_is_a_gap_and_a_chart_of_nothing_is_one() -> None:
    nan, inf = float("nan"), float("inf")
    assert line(charts.lines({"": [(1, nan), (2, inf), (3, 1), (4, None), (nan, 5)]})) == [
        (1, None), (2, None), (3, 1), (4, None)
    ]  # fmt: skip
    report = Report("t")
    for empty in (charts.lines({}), charts.lines({"": []}), charts.bars([]), charts.candles([])):
        report.chart(empty, "nothing")
    assert report.html().count("<figure") == 4
    assert not charts.candles([Candle("a", 1, inf, 0, 1)]).data["candles"]


def test_series_of_the_same_places_share_them() -> None:
    data = charts.lines({"a": [(1, 1), (2, 2)], "b": [(1, 3), (2, 4)], "c": [(2, 5)]}).data
    assert data["x"]["values"] == [1, 2]
    assert [one.get("x") for one in data["series"]] == [None, None, [2]]


def test_many_points_keep_their_peaks_their_gaps_and_their_order() -> None:
    every: list[tuple[float, float | None]] = [(float(n), float(n % 7)) for n in range(100_000)]
    every[54_321] = (54_321.0, 1_000.0)
    every[77_777] = (77_777.0, None)
    found = line(charts.lines({"": every, "other": every}))
    assert charts.VALUES_MAX / 4 < len(found) <= charts.VALUES_MAX / 2
    assert {(54_321, 1_000), (77_777, None)} <= set(found)
    assert [x for x, _ in found] == sorted(x for x, _ in found)


def test_more_than_there_is_room_for_is_cut() -> None:
    assert len(charts.bars((str(n), n) for n in range(1_000)).data["x"]["values"]) == charts.BARS_MAX
    newest = charts.candles(Candle(str(n), 1, 2, 0, 1) for n in range(1_000)).data["x"]["values"]
    assert newest == [str(n) for n in range(1_000 - charts.CANDLES_MAX, 1_000)]
    assert len(charts.lines({str(n): [(1, 1)] for n in range(99)}).data["series"]) == charts.SERIES_MAX
    assert len(charts.bars([("x" * 65_535, 1)]).data["x"]["values"][0]) <= charts.NAME_MAX


def test_the_windows_that_are_there_in_part_are_marked() -> None:
    hour = timedelta(hours=1)

    def marked(count: int, ends: tuple[bool, bool]) -> list[tuple[int, int]]:
        found = charts.partial_marks(START, START + hour * (count - 1), hour, ends)
        return [((mark.begin - START) // hour, (mark.end - START) // hour) for mark in found]  # type: ignore[operator]

    assert marked(4, (False, False)) == []
    assert marked(4, (True, True)) == [(0, 1), (2, 3)]
    assert marked(4, (False, True)) == [(2, 3)]
    assert marked(1, (True, True)) == [(0, 1)]


def test_times_are_of_utc_and_the_axis_says_of_which_days() -> None:
    west = START.astimezone(tz=datetime.strptime("-0500", "%z").tzinfo)
    chart = charts.lines({"": [(west, 1), (START.replace(tzinfo=None) + timedelta(days=1), 2)]})
    assert [x for x, _ in line(chart)] == [START.timestamp() * 1_000, (START + timedelta(days=1)).timestamp() * 1_000]
    assert chart.data["x"]["name"] == "2026-11-21 to 2026-11-22, UTC"
    assert chart.data["x"]["scale"] == "time"


def test_the_report_needs_nothing_but_python() -> None:
    """Neither Spark nor matplotlib: what a report is made with is imported everywhere."""
    code = "import sys, fanlight_spark.jobs.report; print({'pyspark', 'matplotlib', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_numbers_have_seven_digits() -> None:
    assert [charts.number_of(value) for value in (1 / 3, 2.0, 1e300, None)] == [0.3333333, 2, 1e300, None]


def test_the_library_of_the_charts_is_what_its_packages_make() -> None:
    """esbuild makes the same bytes of the same packages, whose hashes the lock file has."""
    if not (bundle_charts.INSTALLED / "node_modules").is_dir():
        pytest.skip("needs Apache ECharts in build/charts: `make test` installs it where there is npm")
    assert (bundle_charts.PAGE / "echarts.js").read_text(encoding="utf-8") == bundle_charts.bundle()
    assert (bundle_charts.PAGE / "ECHARTS-LICENSES.txt").read_text(encoding="utf-8") == bundle_charts.licenses()


def test_the_sentence_of_silence_counts_one_and_many() -> None:
    from fanlight_spark.jobs.silence_report import answer, span

    assert answer(Counter()) == "Nothing fell silent, and nothing is outside its history"
    one = Counter({("topic", "silent", True): 1, ("topic", "rate", False): 1, ("everything", "silent", False): 1})
    assert answer(one) == (
        "1 topic fell silent and still is, nothing at all was archived for 1 unusual stretch, "
        "1 rate is outside its history"
    )
    many = Counter({("topic", "silent", False): 1, ("publisher", "silent", False): 2, ("topic", "new", False): 1_000})
    assert answer(many) == "1 topic and 2 publishers were silent for a while, 1,000 names are new"
    assert [span(seconds) for seconds in (0.2, 59, 90_061, 3_600)] == ["0 s", "59 s", "1 d 1 h", "1 h"]
