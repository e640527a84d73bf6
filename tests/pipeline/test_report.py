"""The page of a job: what it says is escaped, bounded and asks for nothing; its plots are drawn to scale. No Spark."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fanlight_spark.jobs import plots
from fanlight_spark.jobs.plots import number_text
from fanlight_spark.jobs.report import Report

EVIL = '<script>alert(1)</script>"&\x00\x1b[31m'


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def a_report() -> Report:
    report = Report(EVIL, EVIL, made=datetime(2026, 11, 21, tzinfo=UTC))
    report.facts([(EVIL, EVIL)])
    report.section(EVIL)
    report.say(EVIL)
    report.table([EVIL], [(EVIL,)], EVIL)
    report.plot(plots.bars([(EVIL, 1.0)], EVIL), EVIL)
    report.plot(plots.lines({EVIL: [(1, 2), (2, 3)], "other": [(1, 1)]}, x=EVIL, y=EVIL), EVIL)
    return report


def test_whatever_came_over_the_network_is_text() -> None:
    page = Page(a_report().html())
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.text.count("<script>alert(1)</script>") == 17
    assert not set(page.text) & {"\x00", "\x1b"}


def test_a_page_asks_for_nothing_and_forbids_itself_to() -> None:
    html = a_report().html()
    page = Page(html)
    assert not {"img", "link", "iframe", "object", "base"} & {tag for tag, _ in page.tags}
    assert not [key for _, told in page.tags for key in told if key in ("src", "href") or key.startswith("on")]
    assert "url(" not in html
    assert ("meta", "default-src 'none'; style-src 'unsafe-inline'") in [(t, a.get("content")) for t, a in page.tags]


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
    report.write(tmp_path / "new" / "report.html")
    assert b"<h1>a?</h1>" in (tmp_path / "new" / "report.html").read_bytes()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def drawn(svg: str, tag: str) -> list[dict[str, str]]:
    return [one.attrib for one in ElementTree.fromstring(svg).iter(tag)]


def test_bars_are_as_long_as_their_values() -> None:
    long = [float(one["width"]) for one in drawn(plots.bars([("a", 400), ("b", 100), ("c", 0)]), "rect")]
    assert long[0] == 4 * long[1]
    assert long[2] == 1  # to be seen
    assert len(drawn(plots.bars((str(n), n) for n in range(1_000)), "rect")) == plots.BARS_MAX


def test_a_line_goes_through_its_points_on_either_kind_of_axis() -> None:
    def places(svg: str) -> list[tuple[float, float]]:
        (line,) = drawn(svg, "polyline")
        return [tuple(map(float, point.split(","))) for point in line["points"].split()]  # type: ignore[misc]

    (a, top), (b, middle), (c, bottom) = places(plots.lines({"": [(0, 100), (5, 50), (10, 0)]}))
    assert (a, b, c) == (plots.LEFT, (plots.LEFT + plots.WIDTH - plots.RIGHT) / 2, plots.WIDTH - plots.RIGHT)
    assert middle - top == bottom - middle > 50
    (a, _), (b, _), (c, _) = places(plots.lines({"": [(0, 7), (1, 1), (10, 2), (100, 3)]}, log_x=True))
    assert b - a == pytest.approx(c - b)


def test_what_leads_to_a_window_that_is_there_in_part_is_dashed() -> None:
    points = [(float(at), 1.0) for at in range(4)]

    def pieces(count: int, ends: tuple[bool, bool]) -> list[tuple[str, int]]:
        drawn = plots.lines({"a": points[:count]}, partial=ends)
        found = re.findall(r'<polyline class="([^"]+)" points="([^"]+)"', drawn)
        return [(kind, len(path.split())) for kind, path in found]

    assert pieces(4, (False, False)) == [("c0", 4)]
    assert pieces(4, (True, True)) == [("c0", 2), ("c0 partial", 2), ("c0 partial", 2)]
    assert pieces(4, (True, False)) == [("c0", 3), ("c0 partial", 2)]
    assert pieces(3, (True, True)) == [("c0 partial", 2), ("c0 partial", 2)]
    assert pieces(2, (True, True)) == [("c0 partial", 2)]


def test_what_cannot_be_drawn_is_left_out_and_a_plot_of_nothing_is_one() -> None:
    nan, inf = float("nan"), float("inf")
    (line,) = drawn(plots.lines({"": [(1, nan), (2, inf), (3, 1), (4, 2), (nan, 5)]}), "polyline")
    assert len(line["points"].split()) == 2
    for empty in (plots.lines({}), plots.lines({"": []}), plots.bars([]), plots.candles([])):
        assert ElementTree.fromstring(empty).tag == "svg"
    assert drawn(plots.lines({"": [(1, 5)]}), "circle")
    assert drawn(plots.lines({"": [(1, 5), (2, 5)]}, log_x=True, log_y=True), "polyline")


def test_many_points_keep_their_peaks_and_their_order() -> None:
    every = [(float(n), 1000.0 if n == 54_321 else n % 7) for n in range(100_000)]
    (line,) = drawn(plots.lines({"": every}), "polyline")
    places = [tuple(map(float, point.split(","))) for point in line["points"].split()]
    assert plots.POINTS_MAX / 2 < len(places) <= plots.POINTS_MAX
    assert min(y for _, y in places) == plots.TOP  # 1000
    assert [x for x, _ in places] == sorted(x for x, _ in places)


@pytest.mark.parametrize(
    ("span", "ticks"),
    [
        (timedelta(seconds=40), ["20:00:00", "20:00:10", "20:00:20", "20:00:30", "20:00:40"]),
        (timedelta(hours=3), ["20:00", "20:30", "21:00", "21:30", "22:00", "22:30", "23:00"]),
        (timedelta(days=6), ["2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"]),
        (timedelta(days=36), ["2026-11-23", "2026-11-30", "2026-12-07", "2026-12-14", "2026-12-21"]),
        (timedelta(days=365), ["2027-01", "2027-04", "2027-07", "2027-10"]),
        (timedelta(days=3650), ["2028", "2030", "2032", "2034", "2036"]),
    ],
    ids=str,
)
def test_times_are_marked_where_clocks_and_calendars_are_round(span: timedelta, ticks: list[str]) -> None:
    start = datetime(2026, 11, 21, 20, tzinfo=UTC)
    svg = plots.lines({"": [(start, 1), (start + span, 2)]})
    labels = [one.text for one in ElementTree.fromstring(svg).iter("text") if one.get("text-anchor") == "middle"]
    assert labels == ticks


def test_a_candle_that_fell_is_filled_and_the_newest_are_shown() -> None:
    start = datetime(2026, 11, 21, tzinfo=UTC)
    svg = plots.candles([(start, 1, 3, 0.5, 2), (start + timedelta(days=1), 2, 2, 1, 1)])
    assert [one["class"] for one in drawn(svg, "g")] == ["rise", "fall"]
    assert "open 1, high 3, low 0.5, close 2" in svg
    many = [(start + timedelta(days=n), 1.0, 2.0, 0.5, 1.0) for n in range(1_000)]
    assert len(drawn(plots.candles(many), "g")) == plots.CANDLES_MAX


def test_the_jobs_report_needs_nothing_but_python() -> None:
    """Neither Spark nor matplotlib: what a report is made with is imported everywhere."""
    code = "import sys, fanlight_spark.jobs.report; print({'pyspark', 'matplotlib', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_numbers_are_short() -> None:
    told = [number_text(value) for value in (0, 0.25, 999, 9_999, 12_345, 1_500_000, 2e9)]
    assert told == ["0", "0.25", "999", "9999", "12.3 k", "1.5 M", "2 G"]
    assert not [text for text in told if re.search(r"e\+", text)]
