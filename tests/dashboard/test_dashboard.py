"""The dashboard in a real browser, over a running broker: each page, and what an operator does there.

The pictures of docs/dashboard.md are made here, into build/dashboard/ (`make dashboard-pictures` copies them).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from fanlight import sync
from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker, TestBroker
from tests.dashboard.browser import PHONE, Browser
from tests.dashboard.world import World, world
from tests.interop.bridged import bridge, route, write_bridges

ALICE, VIOLA, NOBODY = "alice", "viola", "nobody"  # may do all, may look, may neither
PASSWORD = "as you like it"
PERMISSIONS = f"""\
[[allow]]
name = "operators"
user = "{ALICE}"
everything = "#"
admin = ["read", "write"]

[[allow]]
name = "viewers"
user = "{VIOLA}"
subscribe = "stock.#"
admin = ["read"]

[[deny]]
name = "nobody may publish secrets"
publish = "secret.#"

[[allow]]
name = "never reached"
publish = "secret.plan"

[default]
connect = "allow"
"""
MOSQUITTO = """\
listener 1883 127.0.0.1
psk_hint house
acl_file /etc/mosquitto/acl
persistence true
connection cloud
address mqtt.example.com:1883
remote_username house
remote_password hidden
topic home/# out 1
"""
EVERYBODY_MAY = ("publish", "subscribe", "replay", "queue", "admin")
EXPLAIN = urlencode({"topic": "stock.nasdaq.AAPL", "client": "misspelt"})

# Each page: its address, and what it must show.
PAGES = {
    "topics": ("topics", ("stock", "orders", "Live tail", "Publish")),
    "explain": (f"explain?{EXPLAIN}", ("Why misspelt does not get it", "stocks.nasdaq.AAPL", "Who gets it: 4")),
    "queues": ("queues", ("billing", "audit", "orders.#", "Purge")),
    "dead-letters": ("deadletters", ("dead.billing", "billing-dead: ")),
    "archive": ("archive", ("Messages", "offsets 0 to", "Replay a window")),
    "connections": ("connections", ("desk-nasdaq", "fanlight-python", "Kick")),
    "sessions": ("sessions", ("bridge:headquarters", "1 session")),
    "subscriptions": ("subscriptions?view=redundant", ("stock.nasdaq.AAPL", "Covered by")),
    "slow-consumers": ("slow", ("Nobody falls behind.",)),
    "permissions": ("permissions", ("Try a decision", "nobody may publish secrets", "never")),
    "bridges": ("bridges", ("headquarters", "up", "MQTT 5.0", "Pause")),
    "events": ("events", ("Listening.", "slow consumer")),
    "settings": ("settings", ("native_port", "flag --native-port", "needs a restart")),
    "import": ("import", ("Nothing is put in force.", "Convert")),
    # The last, when there is some history.
    "overview": ("overview", ("Messages in", "Delay of the event loop", "Limits", "subscriptions bytes")),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker) -> Iterator[TestBroker]:
    """With all that a page shows something of; nobody has to log in. Its folder has a name for the pictures."""
    folder = Path(tempfile.mkdtemp(prefix="fanlight-"))
    permissions = folder / "permissions.toml"
    permissions.write_text(PERMISSIONS + "".join(f'{action} = "allow"\n' for action in EVERYBODY_MAY))
    far = start_module_broker()
    bridges = write_bridges(folder / "bridges.toml", [bridge("headquarters", far.mqtt_port, route("transit/#"))])
    started = start_module_broker(
        data=folder / "data", archive=folder / "archive", permissions=permissions, bridges=bridges
    )
    yield started
    assert started.terminate() == 0
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def busy(broker: TestBroker) -> Iterator[World]:
    with world(broker) as made:
        yield made


@pytest.fixture(autouse=True)
def as_it_was(browser: Browser) -> Iterator[None]:
    """A page complains of nothing, and the next test finds a desktop in the light."""
    yield
    assert browser.complaints() == []
    browser.look()


@pytest.mark.parametrize("name", PAGES)
def test_each_page_shows_what_is_there(browser: Browser, busy: World, name: str) -> None:
    page, shown = PAGES[name]
    browser.open(busy.broker.http_url, page)
    browser.shows(*shown)
    assert browser.find("nav a[aria-current=page]").text
    browser.picture(name)
    assert browser.without_a_name() == []
    browser.look(PHONE, dark=True)
    browser.until(lambda: browser.wider_than_the_window() == 0 or None, "a page as wide as a phone")
    if name in ("overview", "connections"):
        browser.picture(f"{name}-phone")


def test_a_misspelt_subscription_is_found_without_knowing_whose_it_is(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "explain")
    browser.write("topic", "stock.nasdaq.AAPL")
    browser.press("Explain", "main button")
    browser.shows("Who nearly gets it", "stock.*.APPL", "word 2 must be 'APPL', and the topic has 'AAPL' there")
    bits = browser.until(
        lambda: [
            [cell.text for cell in row.find_elements("css selector", "td")]
            for row in browser.driver.find_elements("css selector", "table.bitmap tbody tr")
            if row.text.startswith("stock.*.APPL")
        ] or None, "its line of the drawing",
    )
    assert bits == [["1", "1", "1", "0", "0"]]
    assert "topic=stock.nasdaq.AAPL" in browser.driver.current_url


def test_permissions_say_which_rule_decides(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "permissions")
    browser.write("user", "bob")
    browser.write("topic", "secret.plan")
    browser.press("Decide")
    browser.shows("May bob publish?", "denied")
    assert browser.find("section[aria-label=Permission] code").text == "nobody may publish secrets"
    Select(browser.find("select[aria-label='Which rules']")).select_by_value("shadowed")
    browser.shows("Shadowed rules", "never reached", "Decided before it by")


def test_a_client_is_kicked_after_a_question(browser: Browser, busy: World) -> None:
    victim = busy.client("victim", reconnect=False)
    browser.open(busy.broker.http_url, "connections?q=victim")
    browser.press("Kick victim")
    browser.press("Cancel", "dialog button")
    assert victim.connected
    browser.press("Kick victim")
    browser.write("reason", "spring cleaning", within="dialog")
    browser.press("Kick", "dialog button.main")
    browser.shows("victim was disconnected.", "No connections like this.")
    with pytest.raises(sync.FanlightError, match="spring cleaning"):
        victim.flush()


def test_a_bridge_is_paused_and_goes_on(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "bridges")
    browser.press("Routes of headquarters")
    browser.shows("Routes of headquarters", "transit/#")
    browser.press("Close", "dialog button")
    browser.press("Pause headquarters")
    browser.press("Pause", "dialog button.main")
    browser.shows("headquarters is paused.", "Resume")
    browser.press("Resume headquarters")
    browser.shows("headquarters goes on.", "Reconnect")


def test_events_are_shown_as_they_happen(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "events")
    browser.press("", "input[value=connect]")
    browser.shows("Listening.")
    busy.client("somebody-new")
    browser.shows("client connected", "client somebody-new")
    browser.picture("events")


def test_a_queue_is_looked_into_and_purged(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "queues?q=audit")
    browser.press("Messages of audit")
    browser.shows("Messages of audit", "orders.eu.1", "Looking at them changes nothing.")
    browser.press("Close", "dialog button")
    browser.press("Purge audit")
    browser.press("Purge", "dialog button.main")
    browser.shows("11 messages of audit were dropped.")
    browser.until(lambda: " 0 " in browser.find("tbody tr").text or None, "an empty queue")


def test_a_retained_message_is_published_cleared_and_brought_back(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "topics")
    browser.write("topic", "config.limit")
    browser.write("payload", "seventeen")
    browser.press("", "input[name=retain]")
    browser.press("Publish", "main button.main")
    browser.shows("Published; 0 subscriptions got it.", "Retained value", "seventeen")
    browser.press("Clear the retained message of config.limit")
    browser.press("Clear", "dialog button.main")
    browser.shows("The retained message was cleared.", "Nothing is retained on it.")
    browser.press("Undo")
    browser.shows("Retained value", "seventeen")


def test_a_retained_tree_is_cleared_after_it_was_counted(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "topics")
    browser.press("", "input[name=retain]")
    browser.write("payload", "on")
    for room in "abc":
        browser.write("topic", f"house.{room}.light")
        browser.press("Publish", "main button.main")
        browser.shows("Published", f"house.{room}.light", "Retained value")
    browser.press("", "button.node[data-path$='house']")
    browser.press("Clear all retained messages of house.#")
    browser.shows("Clear 3 retained messages?", "house.#")
    browser.press("Clear all of them", "dialog button.main")
    browser.shows("3 retained messages were cleared.")
    browser.press("Clear by a filter")
    browser.write("filter", "house.#", within="dialog")
    browser.press("Find them", "dialog button.main")
    browser.shows("No retained message matches house.#.")


def test_explain_says_of_a_client_that_it_is_not_there_and_who_is_called_alike(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "explain?topic=stock.nasdaq.AAPL&client=DESK-NAS")
    browser.shows("There is no client and no session of this name", "There is: desk-nasdaq")
    browser.press("desk-nasdaq", "#main a")
    browser.shows("Why desk-nasdaq gets it")


def test_the_live_tail_follows_a_filter_and_a_selector(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "topics")
    browser.write("filter", "tail.#")
    browser.write("where", "price > 100")
    browser.press("Follow")
    browser.shows("Waiting for messages…")
    busy.publish([f"tail.{number}" for number in range(10)])
    browser.shows("4 messages", "tail.0", "tail.2", "tail.5", "tail.7")
    assert "tail.1" not in browser.find(".tail").text
    browser.picture("topics")
    browser.press("Stop")
    browser.shows("Stopped.")


def test_a_window_of_the_archive_is_replayed_to_the_page(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "archive")
    browser.write("filter", "orders.#")
    browser.press("Replay", "main button.main")
    browser.shows("12 messages", "orders.eu.11")
    browser.picture("archive")


def test_lists_are_searched_and_sorted_by_the_broker(browser: Browser, busy: World) -> None:
    browser.open(busy.broker.http_url, "subscriptions")
    browser.press("Client", "th button")
    browser.until(lambda: browser.find("th[aria-sort=ascending]") or None, "the order")
    browser.find("main input[type=search]").send_keys("misspelt")
    browser.shows("2 subscriptions", "stocks.nasdaq.AAPL")
    browser.gone("desk-nyse")


def test_the_keyboard_reaches_everything_and_the_theme_is_kept(browser: Browser, busy: World) -> None:
    browser.url = ""
    browser.open(busy.broker.http_url, "overview")
    browser.shows("Messages in")
    browser.picture("overview")  # with more history than before
    browser.driver.find_element("tag name", "body").send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.get_attribute("textContent") == "Skip to the page"
    chart = browser.find("svg[role=img]")
    chart.send_keys(Keys.ARROW_LEFT)
    browser.until(lambda: chart.find_elements("css selector", ".cursor") or None, "the cursor of the chart")
    browser.press("Theme")
    browser.press("Theme")
    theme = "return document.documentElement.dataset.theme"
    assert browser.driver.execute_script(theme) == "dark"
    browser.url = ""
    browser.open(busy.broker.http_url, "overview")
    browser.shows("Theme: dark")
    assert browser.driver.execute_script(theme) == "dark"
    browser.press("Theme")


# -- users ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> TestBroker:
    folder = tmp_path_factory.mktemp("users")
    users, permissions = folder / "users.toml", folder / "permissions.toml"
    for user in (ALICE, VIOLA, NOBODY):
        command = [fanlightd(), "user", "add", str(users), user, "--stdin"]
        subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=60, capture_output=True)
    permissions.write_text(PERMISSIONS)
    return start_module_broker(users_file=users, permissions=permissions)


def log_in(browser: Browser, broker: TestBroker, user: str, password: str = PASSWORD) -> None:
    browser.driver.delete_all_cookies()
    browser.url = ""
    browser.open(broker.http_url, "connections")
    browser.write("user", user)
    browser.write("password", password)
    browser.press("Log in")


def test_where_there_are_users_one_logs_in_and_out(browser: Browser, secured: TestBroker) -> None:
    log_in(browser, secured, ALICE, "as I like it")
    browser.until(lambda: browser.find(".login [role=alert]").text or None, "a refusal")
    browser.picture("login")
    browser.write("password", PASSWORD)
    browser.press("Log in")
    browser.shows("No connections.", f"Log out {ALICE}")
    with sync.connect(secured.url, name="guest", user=ALICE, password=PASSWORD, reconnect=False):
        browser.shows("guest", "Kick")
        browser.press("Kick guest")
        browser.press("Kick", "dialog button.main")
        browser.shows("guest was disconnected.")
    browser.press("Log out")
    browser.shows("A user of this broker who may read or administer it")


def test_the_live_tail_is_of_the_user_who_logged_in(browser: Browser, secured: TestBroker) -> None:
    log_in(browser, secured, VIOLA)
    browser.shows("No connections.")
    browser.open(secured.http_url, "topics")
    browser.write("filter", "stock.#")
    browser.press("Follow")
    browser.shows("Waiting for messages…")
    browser.write("filter", "secret.#")
    browser.press("Follow")
    browser.until(lambda: "permi" in browser.find(".card [role=status]").text or None, "a refusal")
    browser.press("Stop")


def test_who_may_only_look_has_no_buttons_to_act(browser: Browser, secured: TestBroker) -> None:
    log_in(browser, secured, VIOLA)
    with sync.connect(secured.url, name="guest", user=ALICE, password=PASSWORD):
        browser.shows("guest", f"Log out {VIOLA}")
        assert "Kick" not in browser.text()


def test_who_may_not_look_is_refused_in_words(browser: Browser, secured: TestBroker) -> None:
    log_in(browser, secured, NOBODY)
    browser.until(lambda: "permi" in browser.find(".banner").text or None, "a refusal")


# -- another broker's configuration ------------------------------------------------------------------------------------


def test_a_mosquitto_conf_with_a_bridge_becomes_files_to_save(
    browser: Browser, secured: TestBroker, tmp_path: Path
) -> None:
    sent, saved = tmp_path / "mosquitto", tmp_path / "saved"
    for folder in (sent, saved):
        folder.mkdir()
    (sent / "mosquitto.conf").write_text(MOSQUITTO)
    (sent / "acl").write_text("topic read home/#\n")
    log_in(browser, secured, ALICE)
    browser.shows("Connections")
    browser.open(browser.url, "import")
    browser.find("input[type=file]").send_keys(f"{sent / 'mosquitto.conf'}\n{sent / 'acl'}")
    browser.until(lambda: browser.find("textarea").get_attribute("value") == MOSQUITTO or None, "the text of the file")
    browser.press("Convert")
    browser.shows("Has no equivalent", "psk_hint", "bridges.toml", "cloud.password", "1 lines, not shown.")
    assert "hidden" not in browser.find("main").text.partition("Has no equivalent")[2]
    browser.picture("import")
    browser.download_to(saved)
    browser.press("Save bridges.toml", "a")
    command = [fanlightd(), "import", sent / "mosquitto.conf", "--to", tmp_path / "imported"]
    subprocess.run(command, check=False, timeout=60, capture_output=True)
    by_command = (tmp_path / "imported" / "bridges.toml").read_text()
    found = saved / "bridges.toml"
    browser.until(lambda: (found.exists() and found.read_text() == by_command) or None, "what the command writes")
    log_in(browser, secured, VIOLA)
    browser.shows("Connections")
    browser.open(browser.url, "import")
    browser.shows("This needs the permission admin:write.")


# -- a restart ---------------------------------------------------------------------------------------------------------


def test_the_page_goes_on_after_a_restart_of_the_broker(
    browser: Browser, start_broker: StartBroker, tmp_path: Path
) -> None:
    first = start_broker(data=tmp_path / "data")
    browser.open(first.http_url, "overview")
    browser.shows("Live", "Messages in")
    with sync.connect(first.url, name="guest", reconnect=False) as guest:
        browser.press("Drain…")
        browser.write("seconds", "1", within="dialog")
        browser.press("Drain", "dialog button.main")
        browser.shows("The broker drains: it lets nobody in.")
        browser.until(lambda: not guest.connected or None, "a client that has gone")
        browser.press("Let clients in again", "main button")
        browser.gone("it lets nobody in")
    with sync.connect(first.url) as client:
        client.queues.add("jobs", "jobs.#")
        client.publish("jobs.new", b"42", receipt=True)
    port = first.addresses["http"][1]
    browser.press("Drain…")
    browser.press("", "dialog input[name=stop]")
    browser.press("Drain", "dialog button.main")
    assert first.process.wait(60) == 0
    browser.shows("No connection to the broker")
    start_broker(data=tmp_path / "data", http_port=port)
    browser.shows("Live")
    browser.gone("No connection to the broker")
    browser.open(browser.url, "queues")
    browser.press("Messages of jobs")
    browser.shows("jobs.new", "42")
