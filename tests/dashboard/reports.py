"""A report of a job in the browser: its charts as a person sees them, and what must be so of each.

`looked_at` is for the reports of all jobs: tests/dashboard/test_reports.py has what one can do with a chart.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests import require
from tests.dashboard.browser import Browser

PICTURES: Final = require.ROOT / "build" / "reports"  # `make report-pictures` copies them into docs/
SIZE: Final = (1000, 900)
#: A letter that is cut off by the edge of its chart leaves ink there.
PIXELS: Final = """
const canvas = arguments[0].querySelector("canvas"), {width, height} = canvas;
const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
const colours = new Set();
let ink = 0, edge = 0, sum = 0;
for (let at = 0; at < data.length; at += 4) {
  sum = (sum * 31 + data[at] + 256 * data[at + 1] + 65536 * data[at + 2] + 7 * data[at + 3]) | 0;
  if (!data[at + 3]) continue;
  ink += 1;
  colours.add(data[at] + 256 * data[at + 1] + 65536 * data[at + 2]);
  const x = at / 4 % width, y = Math.floor(at / 4 / width);
  if (!x || !y || x === width - 1 || y === height - 1) edge += 1;
}
return {width, height, ink, edge, sum, colours: colours.size};
"""


class Pixels(NamedTuple):
    """What is drawn: how many points have ink, how many of them at the very edge, and a sum that changes with any."""

    width: int
    height: int
    ink: int
    edge: int
    sum: int
    colours: int


class Chart:
    def __init__(self, browser: Browser, figure: WebElement) -> None:
        self.browser, self.figure = browser, figure
        self.title = figure.find_element(By.TAG_NAME, "figcaption").text

    def pixels(self) -> Pixels:
        return Pixels(**self.browser.driver.execute_script(PIXELS, self.figure))

    def press(self, does: str) -> WebElement:
        button = self.figure.find_element(By.CSS_SELECTOR, f"button[data-does={does}]")
        button.click()
        return button

    @property
    def box(self) -> WebElement:
        return self.figure.find_element(By.CLASS_NAME, "chart")

    def tip(self) -> str:
        """What stands beside the pointer; "" if nothing does."""
        boxes = self.box.find_elements(By.CSS_SELECTOR, ":scope > div:not(:first-child)")
        return "\n".join(box.text for box in boxes if box.is_displayed())

    def point(self, x: float = 0.5, y: float = 0.5) -> str:
        """What the chart says when the pointer is there, in parts of its size."""
        driver = self.browser.driver
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.box)
        size = self.box.size
        across, down = round((x - 0.5) * size["width"]), round((y - 0.5) * size["height"])
        ActionChains(driver).move_to_element_with_offset(self.box, across, down).perform()
        return self.browser.until(lambda: self.tip() or None, f"a word beside the pointer in {self.title}")


def open_report(browser: Browser, path: Path) -> list[Chart]:
    """Its charts, all drawn."""
    browser.driver.get("about:blank")
    browser.complaints()  # of pages before
    browser.url = path.as_uri()
    browser.driver.get(browser.url)

    def drawn() -> list[WebElement] | None:
        figures = browser.driver.find_elements(By.CSS_SELECTOR, "figure.data")
        return figures if all(each.get_attribute("data-drawn") for each in figures) else None

    return [Chart(browser, figure) for figure in browser.until(drawn, "all charts") or []]


def requests(browser: Browser) -> list[Any]:
    """What the page has asked the network, or the disk, for."""
    return list(browser.driver.execute_script("return performance.getEntriesByType('resource').map(each => each.name)"))


def looked_at(browser: Browser, path: Path, name: str = "") -> list[Chart]:
    """A report as it must be: its answer first, nothing blank, cut, refused or asked for. name: of a picture."""
    assert path.stat().st_size < 1_000_000
    browser.look(SIZE)
    found = open_report(browser, path)
    answer = browser.driver.find_element(By.CSS_SELECTOR, "p.answer")
    assert answer.text
    assert answer.location["y"] + answer.size["height"] < SIZE[1] / 2
    for chart in found:
        seen = chart.pixels()
        assert seen.edge == 0, f"{path.name}, {chart.title}: something is cut off at the edge"
        assert seen.colours > 8, f"{path.name}, {chart.title}: blank"
        assert seen.ink > 0.005 * seen.width * seen.height, f"{path.name}, {chart.title}: nearly blank"
    assert browser.wider_than_the_window() == 0
    assert browser.without_a_name() == []
    assert browser.complaints() == []
    assert requests(browser) == []
    if name:
        browser.picture(name, PICTURES)
    return found
