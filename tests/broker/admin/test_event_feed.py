"""What the feed of events keeps: the last ones, of what clients say of themselves no more than is shown."""

from pathlib import Path

import pytest

from fanlight_broker import audit
from fanlight_broker.admin.event_feed import KEPT, KINDS, EventFeed, EventListener
from fanlight_broker.auditing import AuditFile
from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.authenticator import PasswordAuthenticator

TEXT_MAX = 500  # characters of a value


@pytest.mark.parametrize("event", ["client_connected", "client_disconnected", "not_permitted"])
def test_a_long_text_is_cut_before_it_is_kept(event: str) -> None:
    """The properties of a client may have as many bytes as a frame, and 1,000 events are kept."""
    feed = EventFeed(lambda: (), dict)
    for number in range(KEPT + 1):
        feed.heard_event(event, {"agent": f"{number:06}" + "x" * 2 * TEXT_MAX, "connection": number, "password": "p"})
    assert len(feed._ring) == KEPT
    last = feed._ring[-1]
    assert last.keys == {
        "event": event, "agent": f"{KEPT:06}" + "x" * (TEXT_MAX - 6), "connection": KEPT,
    }
    assert last.data == {**last.keys, "time": last.data["time"]}


def test_a_listener_gets_it_with_its_time() -> None:
    feed, listener = EventFeed(lambda: (), dict), EventListener(frozenset(KINDS))
    feed._listeners.add(listener)
    feed.heard_event("client_connected", {"client": "a"})
    (event,) = listener.waiting
    assert event.data["time"].endswith("Z")
    assert event.data["client"] == "a"


@pytest.mark.parametrize("audited", [False, True])
async def test_a_login_is_in_the_audit_log_if_there_is_one_and_no_event(tmp_path: Path, audited: bool) -> None:
    """Without an audit log nothing is put together for a login: thousands may come in a second."""
    feed, path = EventFeed(lambda: (), dict), tmp_path / "audit"
    file = AuditFile(path, bytes_max=10_000, files_max=2, queue_max=10) if audited else None
    before = audit.use(file)
    authenticator = PasswordAuthenticator(Credentials())
    feed.overhear()
    try:
        assert audit.is_heard("login_refused")
        assert audit.is_heard("login") == audited
        identity = authenticator.identify("ann", None, address="192.0.2.7")
        assert identity is not None
        assert identity.label == "ann"
    finally:
        feed.be_silent()
        audit.use(before)
        await authenticator.close()
        if file is not None:
            file.close()
    assert len(feed._ring) == 0
    assert not audited or '"kind": "login", "user": "", "unverified_user": "ann"' in path.read_text()
