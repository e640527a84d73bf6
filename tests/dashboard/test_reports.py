"""Charts of a report in a real browser: each kind is drawn whole, and what a reader can do with it.

The reports of the jobs themselves are looked at where they are made: tests/pipeline/test_tutorial.py.
"""

import csv
import io
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from fanlight_spark.jobs import charts
from fanlight_spark.jobs.charts import Candle, Mark
from fanlight_spark.jobs.report import Report
from tests.dashboard.browser import PHONE, Browser
from tests.dashboard.reports import SIZE, Chart, looked_at, open_report

START = datetime(2026, 11, 21, tzinfo=UTC)
STEP = timedelta(minutes=10)
EVIL = "<img src=x onerror=alert(1)>"
LONG = "transit/austin/" + "a-very-long-word-" * 6
OUTAGE = range(60, 66)
POINTS = [(START + STEP * at, 1_000 * (1.2 + math.sin(at / 20))) for at in range(144) if at not in OUTAGE]


def page() -> Report:
    report = Report("Every kind of chart")
    report.answer("138 windows of messages, and one outage of an hour.", found=True)
    report.facts([("messages", 123_456)])
    report.table(["topic", "messages"], [(EVIL, 1), (LONG, 2)])
    marks = [Mark(START, START + STEP, "partial"), Mark(START + STEP * 60, START + STEP * 66, "nothing")]
    series = {"stock": POINTS, EVIL: [(at, 2 * value) for at, value in POINTS], LONG: [(at, 0) for at, _ in POINTS]}
    report.chart(charts.lines(series, y="messages in 10 minutes", step=STEP, marks=marks), "Lines")
    report.chart(charts.bars([(f"{LONG}{n}", 10.0**n) for n in range(20)], "messages"), "Bars")
    report.chart(charts.bars([("one", 5), ("=2+3", 3_000_000)], "bytes"), "Few bars")
    prices = [100 + 10 * math.sin(at / 9) for at in range(121)]
    report.chart(
        charts.candles(
            Candle(f"{START + timedelta(days=at):%Y-%m-%d}", a, max(a, b) + 1, min(a, b) - 1, b, 1e6 * (at + 1))
            for at, (a, b) in enumerate(pairwise(prices))
        ), "Candles",
    )  # fmt: skip
    dots = {"ours": [(10.0**n, 3.0**n) for n in range(7)], "theirs": [(5.0, 7e6)]}
    report.chart(charts.lines(dots, x="filters", y="µs", log_x=True, log_y=True, dots=True), "Dots")
    report.chart(charts.lines({"": [(0, 1e-7), (1, 5e-7), (2, 2e12)]}, x="seconds", y="rate"), "From small to large")
    return report


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser()
    opened.download_to(tmp_path_factory.mktemp("downloads"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("report") / "report.html"
    page().write(made)
    return made


@pytest.fixture
def shown(browser: Browser, path: Path) -> Iterator[dict[str, Chart]]:
    browser.look(SIZE)
    yield {chart.title: chart for chart in open_report(browser, path)}
    assert browser.complaints() == []


def test_every_kind_is_drawn_whole_and_asks_for_nothing(browser: Browser, path: Path) -> None:
    assert len(looked_at(browser, path)) == 6
    browser.look(PHONE, dark=True)
    browser.until(lambda: browser.wider_than_the_window() == 0 or None, "a page as wide as a phone")
    for chart in open_report(browser, path):
        assert chart.pixels().edge == 0, chart.title


def test_an_edge_with_ink_would_be_found(browser: Browser, shown: dict[str, Chart]) -> None:
    chart = shown["Lines"]
    browser.driver.execute_script(
        "arguments[0].querySelector('canvas').getContext('2d').fillText('cut', -3, 50)", chart.figure
    )
    assert chart.pixels().edge > 0


def test_the_pointer_gets_the_values(shown: dict[str, Chart]) -> None:
    said = shown["Lines"].point(0.8)
    assert said.startswith("2026-11-21 1")
    assert " UTC\nstock: " in said
    assert EVIL in said  # as text
    assert "open: " in (said := shown["Candles"].point())
    assert all(f"{name}: " in said for name in ("high", "low", "close", "volume"))
    assert "messages: " in shown["Bars"].point()


def test_an_outage_is_a_gap(browser: Browser, shown: dict[str, Chart]) -> None:
    """Between the last window before it and the first behind it there is no line, only the grey of the mark."""
    blue = """
    const canvas = arguments[0].querySelector("canvas"), middle = Math.floor(canvas.height * 0.9);
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, middle).data, found = new Set();
    for (let at = 0; at < data.length; at += 4)
      if (data[at] < 60 && data[at + 2] > 160 && data[at + 3] > 200) found.add(at / 4 % canvas.width);
    return [canvas.width, [...found].sort((a, b) => a - b)];"""
    width, columns = browser.driver.execute_script(blue, shown["Lines"].figure)
    widest = max(b - a for a, b in pairwise(columns))
    hours = widest / (width * 0.92) * 24
    assert 1.0 < hours < 1.5  # ten minutes more than the six windows


def test_zoom_changes_what_is_shown_and_reset_brings_it_back(browser: Browser, shown: dict[str, Chart]) -> None:
    for title in ("Lines", "Bars", "Candles", "Dots"):
        chart = shown[title]
        whole = chart.pixels().sum
        chart.press("in")
        closer = chart.pixels().sum
        chart.press("right")
        assert len({whole, closer, chart.pixels().sum}) == 3, title
        chart.press("reset")
        assert chart.pixels().sum == whole, title
    box = shown["Lines"].box
    ActionChains(browser.driver).move_to_element(box).key_down(Keys.CONTROL).scroll_by_amount(0, -300).key_up(
        Keys.CONTROL
    ).perform()
    assert "UTC" in shown["Lines"].point(0.5)


def test_a_logarithmic_axis_can_be_asked_for(shown: dict[str, Chart]) -> None:
    for title in ("Lines", "Bars", "Candles"):
        chart = shown[title]
        linear = chart.pixels().sum
        button = chart.press("log")
        assert button.get_attribute("aria-pressed") == "true"
        assert chart.pixels().sum != linear
        assert chart.pixels().edge == 0
        chart.press("log")
        assert chart.pixels().sum == linear


def downloaded(chart: Chart, kind: str, folder: Path) -> bytes:
    chart.browser.download_to(folder)
    chart.press(kind)
    (path,) = chart.browser.until(lambda: list(folder.glob(f"*.{kind}")), f"a {kind} of {chart.title}")
    return path.read_bytes()


def test_the_data_is_downloaded_as_csv(shown: dict[str, Chart], tmp_path: Path) -> None:
    def rows(title: str) -> list[list[str]]:
        folder = tmp_path / title.replace(" ", "-")
        folder.mkdir()
        return list(csv.reader(io.StringIO(downloaded(shown[title], "csv", folder).decode("utf-8-sig"))))

    head, *lines = rows("Lines")
    assert head == ["2026-11-21, UTC", "stock", EVIL, charts.name_of(LONG)]
    assert len(lines) == len(POINTS) + 1  # and one row for the gap
    assert lines[0] == ["2026-11-21T00:00:00.000Z", "1200", "2400", "0"]
    assert [line[1:] for line in lines if not line[1]] == [["", "", ""]]
    assert rows("Few bars") == [["name", "bytes"], ["one", "5"], ["'=2+3", "3000000"]]  # nothing for a spreadsheet
    candles = rows("Candles")
    assert candles[0] == ["start", "open", "high", "low", "close", "volume"]
    assert len(candles) == 121
    assert candles[1][:2] == ["2026-11-21", "100"]
    assert rows("Dots")[-1] == ["theirs", "5", "7000000"]


def test_a_chart_is_downloaded_as_a_picture(shown: dict[str, Chart], tmp_path: Path) -> None:
    seen = shown["Candles"].pixels()
    with Image.open(io.BytesIO(downloaded(shown["Candles"], "png", tmp_path))) as picture:
        assert picture.width == 2 * seen.width
        assert picture.height > 2 * seen.height  # with its title
        colours = picture.convert("RGB").getcolors(1_000_000)
    assert colours is not None
    assert len(colours) > 8
    assert max(colours)[1] == (255, 255, 255)


def test_the_keyboard_reaches_the_values(browser: Browser, shown: dict[str, Chart]) -> None:
    chart = shown["Few bars"]
    chart.box.send_keys(Keys.ARROW_DOWN)
    assert browser.until(lambda: chart.tip() or None, "the first bar") == "one\nbytes: 5"
    chart.box.send_keys(Keys.ARROW_DOWN)
    browser.until(lambda: chart.tip() == "=2+3\nbytes: 3,000,000" or None, "the second")
    lines = shown["Lines"]
    whole = lines.pixels().sum
    lines.box.send_keys("+")
    assert lines.pixels().sum != whole


def test_dark_is_dark_and_paper_is_light(browser: Browser, path: Path) -> None:
    def sums() -> list[int]:
        return [chart.pixels().sum for chart in open_charts]

    browser.look(SIZE)
    open_charts = open_report(browser, path)
    light = sums()
    browser.look(SIZE, dark=True)
    browser.until(lambda: not set(sums()) & set(light) or None, "charts for the dark")
    dark = sums()
    browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert sums() == light
    browser.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert sums() == dark
