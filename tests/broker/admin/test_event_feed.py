"""What the feed of events keeps: the last ones, of what clients say of themselves no more than is shown."""

import pytest

from fanlight_broker.admin.event_feed import KEPT, KINDS, TEXT_MAX, EventFeed, EventListener


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
