"""Debian's chromium, driven by its own chromedriver through Selenium: a page as people see it.

Both come from one source package of Debian, so they always fit together; Selenium only speaks the W3C's protocol to the
driver. Waiting is for what the page shows, asked for ten times a second, never for a time.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests import require

WAIT_SECONDS: Final = 60.0  # a safety net
DESKTOP: Final = (1280, 860)
PHONE: Final = (390, 844)
PICTURES: Final = require.ROOT / "build" / "dashboard"  # `make dashboard-pictures` copies them into docs/
FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
    "--disable-sync", "--no-first-run", "--no-proxy-server", "--mute-audio",
)

# To another page, or to the same one anew; and whether what is shown is not that of before any more.
TURN: Final = """
document.getElementById("main").firstElementChild.dataset.before = "yes";
if (location.hash === arguments[0]) dispatchEvent(new HashChangeEvent("hashchange"));
else location.hash = arguments[0];
"""
TURNED: Final = "return !document.querySelector('#main > [data-before]')"

Found = TypeVar("Found")


class Browser:
    """One window, and what a person does with it."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = require.command("chromium", package="chromium")
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(require.command("chromedriver", package="chromium-driver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.url = ""
        self.look()

    def close(self) -> None:
        self.driver.quit()

    def look(self, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        """How large the window is, and which theme the system prefers."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE},
        )
        preferred = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferred})

    def download_to(self, folder: Path) -> None:
        """Where files go that a page offers."""
        told = {"behavior": "allow", "downloadPath": str(folder)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", told)

    def open(self, url: str, page: str) -> None:
        """A page of the dashboard of the broker at `url`; loaded anew if it is another broker."""
        if url != self.url:
            self.driver.get("about:blank")
            self.url = url
            self.driver.get(f"{url}/#/{page}")
        else:
            self.driver.execute_script(TURN, f"#/{page}")
            self.until(lambda: self.driver.execute_script(TURNED), "the page in place of the one before")

    # -- what is there ------------------------------------------------------------------------------------------------

    def until(self, look: Callable[[], Found | None], what: str) -> Found:
        """What `look` finds, once it does."""

        def tried(_: Any) -> Found | None:
            try:
                return look()
            except StaleElementReferenceException:  # drawn anew meanwhile
                return None

        try:
            found = WebDriverWait(self.driver, WAIT_SECONDS, poll_frequency=0.1).until(tried)
        except TimeoutException:
            raise AssertionError(f"never came: {what}; the page has: {self.text()[:3_000]}") from None
        assert found is not None
        return found

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def shows(self, *texts: str) -> None:
        """Wait until the page has all of these."""
        self.until(lambda: all(text in self.text() for text in texts) or None, f"{texts}")

    def gone(self, text: str) -> None:
        self.until(lambda: text not in self.text() or None, f"no {text!r}")

    def find(self, selector: str, text: str = "") -> WebElement:
        """The first element in sight by a CSS selector, whose text or label begins with `text`."""

        def look() -> WebElement | None:
            for each in self.driver.find_elements(By.CSS_SELECTOR, selector):
                label = each.get_attribute("aria-label") or each.text
                if each.is_displayed() and label.startswith(text):
                    return each
            return None

        return self.until(look, f"{selector} {text!r}")

    def press(self, text: str, selector: str = "button") -> None:
        def pressed() -> bool | None:
            self.find(selector, text).click()
            return True

        self.until(pressed, f"a press of {text!r}")

    def write(self, name: str, text: str, within: str = "main") -> None:
        """Into the field of this name, in place of what is there."""
        element = self.find(f"{within} [name='{name}']")
        element.clear()
        element.send_keys(text)

    # -- what must be so on every page --------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """What the console has: errors of scripts, and what the policy has refused."""
        log: list[dict[str, str]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        lines = [each["message"] for each in log if each["level"] == "SEVERE"]
        return [line for line in lines if "Failed to load resource" not in line]

    def wider_than_the_window(self) -> int:
        """Pixels that the page would have to be scrolled to the side."""
        script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.driver.execute_script(script))

    def without_a_name(self) -> list[str]:
        """Elements that a screen reader could not name: by the browser's own computation of names."""
        all_of_them = "button, a[href], input, select, textarea, [role=img]"

        def look() -> tuple[list[str]]:
            return ([
                str(each.get_attribute("outerHTML"))[:200]
                for each in self.driver.find_elements(By.CSS_SELECTOR, all_of_them)
                if each.is_displayed() and not each.accessible_name
            ],)  # fmt: skip

        (found,) = self.until(look, "a page that is not drawn anew while it is looked at")
        return found

    def picture(self, name: str, folder: Path = PICTURES) -> Path:
        """A picture for docs/dashboard.md, or of a report for another page, in a folder of `build`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        self.driver.execute_script("document.getElementById('notices')?.replaceChildren()")  # of tests before
        self.driver.save_screenshot(str(path))
        return path
