"""Routing rules, end to end: each action, from publishers of both protocols, at each quality of service."""

from typing import Any

import pytest

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, Publish, PubRec, Subscription, WillFields
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.archive_tap import ArchiveTap
from tests.broker.protocols.mqtt.test_store import SlowRecorder
from tests.broker.protocols.mqtt.world import Peer, connect
from tests.broker.protocols.native.test_queues import deliveries, subscribe
from tests.broker.protocols.native.world import frame, publish
from tests.broker.protocols.rule_worlds import RuleWorld, arrived, rule, topics

COPY = rule(name="copy", topic="orders.*.new", where="price > 100", to="stock.$2.$1")
DROP = rule(name="drop", topic="orders.secret.#", drop=True)
QUALITIES = pytest.mark.parametrize("qos", [0, 1, 2])
KNOWN = pytest.mark.parametrize("known", [False, True], ids=["new topic", "topic in the cache"])


def props(**headers: Any) -> dict[str, Any]:
    return {"user_properties": tuple((name, str(value)) for name, value in headers.items())}


# -- the actions, natively ---------------------------------------------------------------------------------------------


@KNOWN
def test_a_copy_has_the_words_of_the_first_and_the_receipt_covers_both(known: bool) -> None:
    world = RuleWorld("" if known else COPY + DROP)
    reader, publisher = world.native("#"), world.native()
    if known:  # routes that are kept are asked again when the rules change
        publisher.send(publish("orders.eu.new", b"0", {"price": 120}), publish("orders.secret.x", b"0"))
        assert topics(reader) == ["orders.eu.new", "orders.secret.x"]
        world.use(COPY + DROP)
    publisher.send(
        publish("orders.eu.new", b"1", {"price": 120}, request=1),
        publish("orders.eu.new", b"2", {"price": 80}, request=2),
        publish("orders.secret.x", b"3", request=3), publish("other", b"4", request=4),
    )  # fmt: skip
    assert [(fields[2], fields[3]) for fields in reader.frames()] == [
        ("orders.eu.new", b"1"), ("stock.eu.orders", b"1"), ("orders.eu.new", b"2"), ("other", b"4"),
    ]
    assert publisher.frames() == [[5, 1, 2], [5, 2, 1], [5, 3, 0], [5, 4, 1]]
    assert (world.rules.copied, world.rules.dropped) == (1, 1)
    assert world.broker.ledger.messages_in == 4 + 2 * known  # a copy was not received
    assert world.broker.ledger.unroutable == 0


def test_replace_and_set() -> None:
    world = RuleWorld(
        rule(topic="a.#", salience=1, set={"region": "eu", "n": 7, "ok": True, "content-type": "text/plain"})
        + rule(topic="a.#", salience=2, replace="b.$0")
        + rule(topic="b.#", salience=1, where="region = 'eu' AND n = 7", set={"seen": "b"})
    )
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a.x", b"1", {"region": "us", "k": [1, 2]}, None, "r.s", request=1))
    headers = {"region": "eu", "k": [1, 2], "n": 7, "ok": True, "content-type": "text/plain", "seen": "b"}
    assert reader.frames() == [[4, 1, "b.a.x", b"1", headers, None, "r.s"]]
    assert publisher.frames() == [[5, 1, 1]]


def test_a_message_without_headers_or_with_a_topic_that_is_no_text_is_changed_too() -> None:
    world = RuleWorld(rule(topic="*", set={"h": 1}) + rule(topic="*", to="x.$1"))
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a", b"1"), publish(b"\xff", b"2"))
    assert [fields[2:5] for fields in reader.frames()] == [
        ["a", b"1", {"h": 1}], ["x.a", b"1", {"h": 1}], [b"\xff", b"2", {"h": 1}], [b"x.\xff", b"2", {"h": 1}],
    ]


def test_priority_is_the_header_that_queues_read() -> None:
    world = RuleWorld(rule(topic="jobs.*", where="urgent", priority=9))
    queue: dict[str, Any] = {"queue": {"priorities": 10}}
    first, second = world.native(), world.native()
    subscribe(first, "jobs.#", "work", **queue)
    first.vanish()
    urgent = {"urgent": True, "priority": 1}
    world.native().send(publish("jobs.a", b"1", {"priority": 5}), publish("jobs.b", b"2", urgent))
    world.connect("p").publish("jobs/c", b"3", **props(urgent="true"))
    subscribe(second, "jobs.#", "work", **queue)
    assert [payload for _, _, payload in deliveries(second)] == [b"2", b"3", b"1"]


def test_delay_puts_a_message_off_and_other_rules_act_when_it_is_due() -> None:
    world = RuleWorld(
        rule(name="copy", topic="a", salience=1, to="b") + rule(name="later", topic="a", salience=2, delay="5s")
    )
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a", b"1", request=1))
    ((kind, request, routed, *_, delayed, _id),) = publisher.frames()
    assert (kind, request, routed, delayed) == (5, 1, 0, True)
    assert reader.frames() == []
    world.pass_time(4.9)
    assert reader.frames() == []
    world.pass_time(0.1)
    assert topics(reader) == ["a", "b"]
    assert (world.rules.delayed, world.rules.copied, len(world.broker.delayed)) == (1, 1, 0)


def test_a_copy_that_is_delayed_is_delayed_alone_and_once() -> None:
    world = RuleWorld(
        rule(topic="a", to="b") + rule(topic="b", delay="5s") + rule(topic="b", where="$words = 1", to="c")
    )
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a", b"1", request=1))
    assert publisher.frames() == [[5, 1, 1]]
    assert topics(reader) == ["a"]
    world.pass_time(5)
    assert topics(reader) == ["b", "c"]
    assert len(world.broker.delayed) == 0


def test_a_message_that_its_publisher_delays_meets_the_rules_when_it_is_due() -> None:
    world = RuleWorld(rule(topic="a", where="$client IS NOT NULL", to="b") + rule(topic="a", delay="100s"))
    reader, publisher = world.native("#"), world.native()
    publisher.send(frame(3, 1, "a", b"1", None, None, None, None, {"delay": 2}))
    assert reader.frames() == []
    world.use(rule(topic="a", replace="c") + rule(topic="a", delay="100s"))  # those in force when it is due
    world.pass_time(2)
    assert topics(reader) == ["c"]
    assert world.rules.replaced == 1


def test_a_delayed_message_that_a_rule_drops_when_it_is_due_is_done_with() -> None:
    world = RuleWorld(rule(topic="a", drop=True))
    reader, publisher = world.native("#"), world.native()
    publisher.send(frame(3, 1, "a", b"1", None, None, None, None, {"delay": 2}))
    before = world.broker.ledger.messages_in
    world.pass_time(2)
    assert reader.frames() == []
    assert (len(world.broker.delayed), world.broker.ledger.messages_in - before) == (0, 1)


def test_archive_records_what_the_archive_does_not_select() -> None:
    world = RuleWorld(rule(topic="a.*", where="keep", archive=True) + rule(topic="a.*", where="keep", to="b.$2"))
    tap = ArchiveTap(
        rows_max=9, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda columns: None
    )
    world.broker.router.archive_selection = ArchiveSelection(tap, [(b"kept.#", "amqp")])
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a.x", b"1", {"keep": True}), publish("a.x", b"2"), publish("kept.x", b"3"))
    assert topics(reader) == ["a.x", "b.x", "a.x", "kept.x"]
    assert tap.taken == 2


def test_what_the_topic_cannot_be_made_of_is_not_done_and_counted() -> None:
    world = RuleWorld(rule(topic="a.#", salience=1, replace="$3.$2") + rule(topic="a.#", salience=2, to="b"))
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a.x"), publish("a.x.y"), publish("a.b.$SYS"))
    assert topics(reader) == ["a.x", "b", "y.x", "a.b.$SYS", "b"]
    assert (world.rules.failed, world.rules.stopped) == (2, 0)


def test_a_circle_that_nobody_could_prove_ends_after_eight_copies() -> None:
    world = RuleWorld(
        rule(topic="a", where="$words < 5", to="b") + rule(topic="b", where="$words < 6", replace="a")
    )
    reader, publisher = world.native("#"), world.native()
    publisher.send(publish("a", b"1", request=1))
    assert topics(reader) == ["a"] * 5
    assert publisher.frames() == [[5, 1, 5]]
    assert (world.rules.copied, world.rules.replaced, world.rules.failed, world.rules.stopped) == (4, 4, 1, 1)


def test_the_brokers_own_topics_and_inboxes_are_not_for_rules() -> None:
    world = RuleWorld(rule(topic="#", drop=True), sys_interval_seconds=1.0)
    reader, publisher = world.native("$inbox.#", "#"), world.native()
    inbox = reader.protocol.client.subscriber.inbox if reader.protocol.client is not None else ""
    reader.frames()
    reader.say(6, None, 3, f"{inbox}.#")
    publisher.send(publish(f"{inbox}.1", b"reply"), publish("a", b"1"))
    assert [fields[3] for fields in reader.frames() if fields[0] == 4] == [b"reply"]


def test_nothing_is_published_of_a_message_while_any_of_its_subscribers_holds_publishers_back() -> None:
    world = RuleWorld(rule(topic="a", to="b"), outbox_bytes_max=2_000, frame_bytes_max=1_000)
    first, slow, publisher = world.native("a"), world.native("b", slow_policy="pause"), world.native()
    slow.reads = False
    sent = 0
    while not publisher.held_back and sent < 1_000:
        publisher.send(publish("a", b"%d" % sent + b"." * 100))
        sent += 1
    assert publisher.held_back
    before = len(topics(first))
    slow.read_all()
    assert not publisher.held_back
    assert before + len(topics(first)) == sent == len(topics(slow))


def test_a_repeated_message_is_not_copied_again() -> None:
    world = RuleWorld(rule(topic="a", to="b") + rule(topic="d", drop=True))
    reader, publisher = world.native("#"), world.native()
    for topic, sequence in (("a", 1), ("a", 1), ("d", 2), ("d", 2), ("a", 3)):
        publisher.send(frame(3, sequence, topic, b"x", None, None, None, ["p", 0, sequence]))
    assert topics(reader) == ["a", "b", "a", "b"]
    assert [fields[3:] for fields in publisher.frames()] == [[], [None, True], [], [None, True], []]


# -- MQTT --------------------------------------------------------------------------------------------------------------


def codes(answers: list[Any]) -> list[ReasonCode]:
    assert all(isinstance(each, PubAck | PubRec | PubComp) for each in answers), answers
    return [each.reason_code for each in answers]


@QUALITIES
@KNOWN
@pytest.mark.parametrize("version", [V3, V5])
def test_a_copy_has_the_quality_of_the_first_and_one_acknowledgement_is_for_both(
    qos: int, known: bool, version: Version
) -> None:
    rules = rule(topic="orders.*.new", to="stock.$2.$1") + DROP
    world = RuleWorld("" if known else rules)
    reader, publisher = world.connect("r"), world.connect("p", version)
    reader.subscribe("#", qos=2)
    if known:
        publisher.publish("orders/eu/new", b"0", qos)
        publisher.publish("orders/secret/x", b"0", qos)
        assert len(arrived(reader)) == 2
        world.use(rules)
    answers = publisher.publish("orders/eu/new", b"1", qos)
    assert codes(answers) == [ReasonCode.SUCCESS] * qos
    assert arrived(reader) == [("orders/eu/new", b"1", qos), ("stock/eu/orders", b"1", qos)]
    answers = publisher.publish("orders/secret/x", b"2", qos)
    nobody = ReasonCode.NO_MATCHING_SUBSCRIBERS if version is V5 else ReasonCode.SUCCESS
    assert codes(answers) == [[], [nobody], [nobody, ReasonCode.SUCCESS]][qos]
    assert arrived(reader) == []
    publisher.publish("orders/eu/new", b"3", qos)  # the connection goes on
    assert len(arrived(reader)) == 2


@QUALITIES
def test_replace_keeps_the_properties_and_sets_others(qos: int) -> None:
    world = RuleWorld(
        rule(topic="mqtt:a/+", where="price > 5", salience=1, set={"region": "eu", "n": 7, "content-type": "b/c"})
        + rule(topic="a.*", where="price > 5", salience=2, replace="b.$2")
    )
    reader, publisher = world.connect("r"), world.connect("p")
    reader.subscribe("#", qos=2)
    publisher.publish(
        "a/x", b"1", qos, **props(region="us", price="9"), content_type="a/b", response_topic="back",
        correlation_data=b"c", payload_format_indicator=1, message_expiry_interval=60,
    )
    (message,) = reader.messages()
    assert (message.topic, message.payload, message.qos) == ("b/x", b"1", qos)
    found = message.properties
    assert found.user_properties == (("price", "9"), ("region", "eu"), ("n", "7"))
    assert (found.content_type, found.response_topic, found.correlation_data) == ("b/c", "back", b"c")
    assert (found.payload_format_indicator, found.message_expiry_interval) == (1, 60)


def test_what_waits_for_an_absent_client_says_how_long_it_is_still_good_for() -> None:
    world = RuleWorld(rule(topic="a", salience=1, set={"h": "1"}) + rule(topic="a", salience=2, to="b"))
    reader = world.connect("r", session_expiry_interval=1_000)
    reader.subscribe("a", "b", qos=1)
    reader.vanish()
    world.connect("p").publish("a", b"1", 1, message_expiry_interval=60)
    world.pass_time(10)
    again = world.open()
    again.say(connect("r", clean_start=False, session_expiry_interval=1_000))
    found = [packet for packet in again.packets() if isinstance(packet, Publish)]
    assert [(each.topic, each.properties.message_expiry_interval) for each in found] == [("a", 50), ("b", 50)]
    assert all(each.properties.user_properties == (("h", "1"),) for each in found)


@QUALITIES
def test_a_copy_of_a_retained_message_is_retained_and_a_replaced_one_is_only_there(qos: int) -> None:
    world = RuleWorld(rule(topic="a", to="b") + rule(topic="c", replace="d") + rule(topic="e", drop=True))
    publisher = world.connect("p")
    for topic in "ace":
        publisher.publish(topic, topic.encode(), qos, retain=True)
    reader = world.connect("r")
    reader.subscribe("#", qos=2)
    assert sorted(arrived(reader)) == [("a", b"a", qos), ("b", b"a", qos), ("d", b"c", qos)]
    publisher.publish("a", b"", qos, retain=True)  # clears both
    assert [message.payload for message in reader.messages()] == [b"", b""]
    other = world.connect("o")
    other.subscribe("#")
    assert [message.topic for message in other.messages()] == ["d"]


@pytest.mark.parametrize("delay", [0, 20])
def test_a_will_meets_the_rules(delay: int) -> None:
    world = RuleWorld(rule(topic="status.*", to="alarms.$2") + rule(topic="gone", drop=True))
    reader = world.connect("r")
    reader.subscribe("#")
    for topic in ("status/x", "gone"):
        will = WillFields(topic, b"lost", 1, retain=True)
        world.connect(topic.replace("/", ""), will=will).vanish()
    assert [message.topic for message in reader.messages()] == ["status/x", "alarms/x"]
    assert world.broker.sessions.wills_published == 2


def test_a_will_that_a_rule_delays_comes_later() -> None:
    world = RuleWorld(rule(topic="w", delay="30s") + rule(topic="w", to="v"))
    reader = world.connect("r")
    reader.subscribe("#")
    world.connect("c", will=WillFields("w", b"lost")).vanish()
    assert reader.messages() == []
    world.pass_time(30)
    assert [message.topic for message in reader.messages()] == ["w", "v"]


@QUALITIES
def test_a_message_that_a_rule_delays_is_acknowledged_at_once(qos: int) -> None:
    world = RuleWorld(rule(topic="a", where="later = 'yes'", delay=3))
    reader, publisher = world.connect("r"), world.connect("p")
    reader.subscribe("a", qos=2)
    answers = publisher.publish("a", b"1", qos, **props(later="yes"))
    assert codes(answers) == [ReasonCode.SUCCESS] * qos
    assert reader.messages() == []
    world.pass_time(3)
    assert arrived(reader) == [("a", b"1", qos)]


@QUALITIES
def test_a_publisher_does_not_get_its_own_copy_if_it_does_not_want_its_own_messages(qos: int) -> None:
    world = RuleWorld(rule(topic="a", to="b"))
    peer = world.connect("p")
    peer.subscribe(Subscription("#", 2, no_local=True))
    peer.publish("a", b"1", qos)
    assert peer.packets() == []


def full(version: Version, rules: str) -> tuple[RuleWorld, Peer]:
    """A publisher, and a session that is away and whose queue for `b` has no room."""
    world = RuleWorld(rules, queue_messages_max=1, inflight_messages_max=1)
    reader = world.connect("r", session_expiry_interval=1_000)
    reader.subscribe("b", qos=1)
    reader.vanish()
    return world, world.connect("p", version)


@pytest.mark.parametrize("action", [{"replace": "b"}, {"to": "b"}])
def test_a_message_is_refused_as_a_whole_if_no_queue_has_room_for_what_is_made_of_it(action: dict[str, Any]) -> None:
    world, publisher = full(V5, rule(topic="a", **action))
    seen = world.connect("s")
    seen.subscribe("a")
    assert codes(publisher.publish("a", b"1", 1)) == [ReasonCode.SUCCESS]
    assert codes(publisher.publish("a", b"2", 1)) == [ReasonCode.QUOTA_EXCEEDED]
    assert [message.payload for message in seen.messages()] == ([b"1"] if "to" in action else [])


def test_a_message_that_its_own_queues_turn_away_is_not_copied() -> None:
    world, publisher = full(V5, rule(topic="b", to="a"))
    seen = world.connect("s")
    seen.subscribe("a")
    for payload, code in ((b"1", ReasonCode.SUCCESS), (b"2", ReasonCode.QUOTA_EXCEEDED)):
        assert codes(publisher.publish("b", payload, 1)) == [code]
    assert [message.payload for message in seen.messages()] == [b"1"]
    assert world.rules.copied == 1


def test_an_acknowledgement_waits_until_the_archive_has_what_a_rule_archives() -> None:
    world = RuleWorld(rule(topic="a", to="b") + rule(topic="b", archive=True))
    recorder = SlowRecorder(world)
    world.broker.router.archive_selection = ArchiveSelection(recorder.tap, [(b"kept", "amqp")])
    world.broker.record_to(recorder)
    publisher = world.connect("p")
    assert publisher.publish("a", b"1", 1) == []
    recorder.flush()
    world.turn()
    assert codes(publisher.packets()) == [ReasonCode.NO_MATCHING_SUBSCRIBERS]
    assert recorder.taken == 1


def test_an_invalid_topic_alias_or_a_known_one_makes_no_difference() -> None:
    world = RuleWorld(rule(topic="a.*", to="b.$2"))
    reader, publisher = world.connect("r"), world.connect("p")
    reader.subscribe("#")
    publisher.publish("a/x", b"1", topic_alias=1)
    publisher.publish("", b"2", topic_alias=1)
    assert [(each.topic, each.payload) for each in reader.messages()] == [
        ("a/x", b"1"), ("b/x", b"1"), ("a/x", b"2"), ("b/x", b"2"),
    ]


def test_rules_cross_from_one_protocol_to_the_other() -> None:
    world = RuleWorld(rule(topic="a.*", where="price > 5", set={"seen": True}) + rule(topic="a.*", to="b.$2"))
    reader, native = world.connect("r"), world.native("#")
    reader.subscribe("#")
    native.send(publish("a.x", b"1", {"price": 9}))
    assert [(each.topic, each.properties.user_properties) for each in reader.messages()] == [
        ("a/x", (("price", "9"), ("seen", "true"))), ("b/x", (("price", "9"), ("seen", "true"))),
    ]
    world.connect("p").publish("a/y", b"2", **props(price="6"))
    assert topics(native) == ["a.x", "b.x", "a/y", "b/y"]


def test_rules_may_be_replaced_and_removed_between_two_messages() -> None:
    world = RuleWorld(rule(topic="a", to="b"))
    reader, publisher, native = world.connect("r"), world.connect("p"), world.native()
    reader.subscribe("#")

    def got() -> list[str]:
        publisher.publish("a", b"1", 1)
        native.send(publish("a", b"2"))
        return [message.topic for message in reader.messages()]

    assert got() == ["a", "b", "a", "b"]
    world.use(rule(topic="a", replace="c"))
    assert got() == ["c", "c"]
    world.use(rule(topic="z", drop=True))
    assert got() == ["a", "a"]
