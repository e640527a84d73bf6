"""Well-formed frames, for make_vectors.py: a vector a line."""

from typing import Any

from .frame_bytes import (
    ACK,
    CONSUMER,
    CONSUMER_INFO,
    CREDIT,
    DELIVERY,
    ENDED,
    ERROR,
    FALSE,
    FROM_CLIENTS,
    GOODBYE,
    HELD,
    HELLO,
    IN_PROGRESS,
    MESSAGE,
    NACK,
    NAMES,
    NIL,
    OK,
    OTHER_NAMES,
    PING,
    PONG,
    PUBLISH,
    QUEUE,
    RECEIPT,
    REPLAY,
    REPLAY_END,
    SUBSCRIBE,
    TERM,
    TRUE,
    UNSUBSCRIBE,
    WELCOME,
    array,
    array16,
    array32,
    bin16,
    bin32,
    fixint,
    float64,
    frame,
    framed,
    hexed,
    int64,
    mapping,
    nested,
    num,
    octets,
    options,
    str16,
    str32,
    text,
    uint16,
    uint32,
    uint64,
)

FRAMES: list[dict[str, Any]] = []


def vector(name: str, kind: int, data: bytes, note: str = "", canonical: bool = False, **fields: Any) -> None:
    direction = "client" if kind in FROM_CLIENTS else "broker"
    directions = ("client", "broker") if kind in (PING, PONG, GOODBYE) else (direction,)
    FRAMES.extend(
        {
            "name": name if len(directions) == 1 else f"{name}_from_{each}",
            "direction": each,
            "type": kind,
            "type_name": OTHER_NAMES.get(kind) or NAMES[kind],
            "fields": {key: hexed(value) if isinstance(value, bytes) else value for key, value in fields.items()},
            "bytes": data.hex(),
            "canonical": canonical,
            "note": note,
        }
        for each in directions
    )


def well_formed() -> None:
    # HELLO, WELCOME
    vector("hello_minimal", HELLO, frame(fixint(1), fixint(1), b"\x80"), "no options: anonymous, a name made up",
           True, version=1, options={})
    vector(
        "hello_all_options", HELLO,
        frame(fixint(1), fixint(1), options(client=text("desk-7"), user=text("anna"), password=text("s3cret"),
                                            agent=text("demo/1.0"), slow_policy=text("drop_oldest"))),
        "", True, version=1,
        options={"client": "desk-7", "user": "anna", "password": "s3cret", "agent": "demo/1.0",
                 "slow_policy": "drop_oldest"},
    )
    vector("hello_newer_client", HELLO, frame(fixint(1), fixint(9), b"\x80"),
           "a client of a later version; the broker answers with the version that both speak", True,
           version=9, options={})
    vector("hello_unknown_option_and_field", HELLO,
           frame(fixint(1), fixint(1), options(client=text("x"), compression=text("zstd")), text("later")),
           "an option and a field of a later version, both ignored", version=1,
           options={"client": "x", "compression": "zstd"})
    limits = {"frame_bytes": 1048576, "topic_bytes": 65535, "topic_words": 128, "subscriptions": 10000,
              "pending_messages": 65536, "outbox_bytes": 8388608}
    vector(
        "welcome", WELCOME,
        frame(fixint(2), fixint(1),
              options(server=text("fanlight/0.1.0"), connection=num(42), client=text("desk-7"),
                      inbox=text("$inbox.9f86d081884c7d659a2feaa0c55ad015"), slow_policy=text("pause"),
                      idle_seconds=num(60),
                      limits=options(**{key: num(value) for key, value in limits.items()}))),
        "", True, version=1,
        info={"server": "fanlight/0.1.0", "connection": 42, "client": "desk-7",
              "inbox": "$inbox.9f86d081884c7d659a2feaa0c55ad015", "slow_policy": "pause", "idle_seconds": 60,
              "limits": limits},
    )
    vector("welcome_unknown_info", WELCOME,
           frame(fixint(2), fixint(1), options(inbox=text("$inbox.0a"), shard=num(3)), TRUE),
           "a key and a field of a later version, both ignored", version=1, info={"inbox": "$inbox.0a", "shard": 3})

    # PUBLISH
    plain = {"request": None, "topic": "forex.eur", "payload": b"hi", "headers": None, "syntax": 0, "reply": None,
             "mark": None, "options": None}
    topic, hi = text("forex.eur"), octets(b"hi")
    vector("publish_minimal", PUBLISH, frame(fixint(3), NIL, topic, hi), "fire-and-forget", True, **plain)
    vector("publish_nil_defaults", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL),
           "the same message: nil is a field's default", **plain)
    vector("publish_syntax_spelled_out", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, fixint(0)), "", **plain)
    vector("publish_empty_headers", PUBLISH, frame(fixint(3), NIL, topic, hi, b"\x80"),
           "an empty map means what nil means", **plain)
    vector("publish_trailing_unknown_fields", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, NIL, options(ttl=num(30)), fixint(-1)),
           "fields of a later version, ignored", **plain)
    vector("publish_nested_eight_levels", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, NIL, nested(7)),
           "an ignored field; with the frame's own array it is eight levels deep, which is allowed", **plain)
    vector("publish_delay", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, options(delay=float64(2.5))),
           "delivered in 2.5 s", True, **{**plain, "options": {"delay": 2.5}})
    vector("publish_deliver_at", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, options(deliver_at=fixint(0), later=TRUE)),
           "delivered at once, for the time is over; an unknown key is ignored", True,
           **{**plain, "options": {"deliver_at": 0, "later": True}})
    vector("publish_receipt", PUBLISH, frame(fixint(3), fixint(7), topic, hi), "answered RECEIPT 7", True,
           **{**plain, "request": 7})
    vector("publish_request_u32_max", PUBLISH, frame(fixint(3), uint32(2**32 - 1), topic, hi), "", True,
           **{**plain, "request": 2**32 - 1})
    vector("publish_empty_payload", PUBLISH, frame(fixint(3), NIL, topic, octets(b"")), "", True,
           **{**plain, "payload": b""})
    vector("publish_empty_topic", PUBLISH, frame(fixint(3), NIL, text(""), hi),
           "in dotted spelling the empty topic has no words, and is allowed", True, **{**plain, "topic": ""})
    vector("publish_empty_words", PUBLISH, frame(fixint(3), NIL, text("a..b"), hi), "three words, the second empty",
           True, **{**plain, "topic": "a..b"})
    vector("publish_utf8_topic", PUBLISH, frame(fixint(3), NIL, text("börse.zürich"), hi), "", True,
           **{**plain, "topic": "börse.zürich"})
    vector("publish_bin_topic", PUBLISH, frame(fixint(3), NIL, octets(b"raw.\xff\xfe"), hi),
           "octets that are not UTF-8", True, **{**plain, "topic": b"raw.\xff\xfe"})
    vector("publish_mqtt", PUBLISH, frame(fixint(3), NIL, text("site/7/temp"), hi, NIL, fixint(1)), "", True,
           **{**plain, "topic": "site/7/temp", "syntax": 1})
    vector("publish_mqtt_dot_in_word", PUBLISH, frame(fixint(3), NIL, text("stock/nyse/BRK.B"), hi, NIL, fixint(1)),
           "three words: in this spelling a dot parts nothing", True,
           **{**plain, "topic": "stock/nyse/BRK.B", "syntax": 1})
    vector("publish_long_topic", PUBLISH, frame(fixint(3), NIL, text("w." * 20 + "w"), hi), "topic as str 8", True,
           **{**plain, "topic": "w." * 20 + "w"})
    vector("publish_bin16_payload", PUBLISH, frame(fixint(3), NIL, topic, octets(b"\x00\xff" * 150)), "", True,
           **{**plain, "payload": b"\x00\xff" * 150})
    vector("publish_non_minimal", PUBLISH,
           framed(array16(fixint(3), uint64(7), str32("forex.eur"), bin32(b"hi"), NIL, uint16(0))),
           "every length and integer in a longer form than it needs, the type excepted", **{**plain, "request": 7})
    vector("publish_array32", PUBLISH, framed(array32(fixint(3), int64(7), str16("forex.eur"), bin16(b"hi"))),
           "a signed form of an integer that is not negative", **{**plain, "request": 7})
    headers = mapping(
        (text("content-type"), text("application/json")), (text("correlation-id"), octets(b"\x01\x02")),
        (text("count"), num(300)), (text("ratio"), float64(0.5)), (text("live"), TRUE), (text("none"), NIL),
        (text("tags"), array(text("a"), num(1), NIL)), (text("below"), fixint(-3)),
    )  # fmt: skip
    known = {"content-type": "application/json", "correlation-id": hexed(b"\x01\x02"), "count": 300, "ratio": 0.5,
             "live": True, "none": None, "tags": ["a", 1, None], "below": -3}
    vector("publish_all_fields", PUBLISH,
           frame(fixint(3), fixint(9), topic, hi, headers, fixint(0), text("$inbox.0a.9")),
           "every kind of header value", **{**plain, "request": 9, "headers": known, "reply": "$inbox.0a.9"})
    vector("publish_mqtt_reply", PUBLISH,
           frame(fixint(3), fixint(9), text("ask/time"), octets(b""), NIL, fixint(1), text("$inbox/0a/9")),
           "topic and reply in the same spelling", True, request=9, topic="ask/time", payload=b"", headers=None,
           syntax=1, reply="$inbox/0a/9", mark=None, options=None)
    vector("publish_mark", PUBLISH,
           frame(fixint(3), fixint(7), topic, hi, NIL, NIL, NIL, array(text("q1.0"), fixint(3), num(4711))),
           "message 4711 of batch 3 of the producer q1.0 (3.8)", True,
           **{**plain, "request": 7, "mark": ["q1.0", 3, 4711]})
    vector("publish_mark_without_request", PUBLISH,
           frame(fixint(3), NIL, topic, hi, headers, fixint(0), text("$inbox.0a.9"),
                 array(text("p" * 255), num(2**64 - 1), num(2**64 - 1)), NIL, text("later")),
           "the longest name, the highest numbers, a field of a later version",
           **{**plain, "headers": known, "reply": "$inbox.0a.9", "mark": ["p" * 255, 2**64 - 1, 2**64 - 1]})
    vector("publish_mark_nil", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL), "no mark", **plain)
    vector("publish_header_key_255_bytes", PUBLISH,
           frame(fixint(3), NIL, topic, hi, mapping((text("k" * 255), fixint(1)))), "the longest key allowed", True,
           **{**plain, "headers": {"k" * 255: 1}})

    # MESSAGE
    message = {"subscription": 7, "topic": "forex.eur", "payload": b"hi", "headers": None, "syntax": 0, "reply": None}
    vector("message_minimal", MESSAGE, frame(fixint(4), uint32(7), topic, hi),
           "the subscription always takes five bytes, at offset 6 of the frame", **message)
    vector("message_nil_defaults", MESSAGE, frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL), "", **message)
    vector("message_all_fields", MESSAGE,
           frame(fixint(4), uint32(2**32 - 1), topic, hi, headers, fixint(0), text("$inbox.0a.9")), "",
           **{**message, "subscription": 2**32 - 1, "headers": known, "reply": "$inbox.0a.9"})
    vector("message_mqtt", MESSAGE, frame(fixint(4), uint32(7), text("site/7/temp"), hi, NIL, fixint(1)), "",
           **{**message, "topic": "site/7/temp", "syntax": 1})
    vector("message_bin_topic", MESSAGE, frame(fixint(4), uint32(7), octets(b"raw.\xff\xfe"), hi), "",
           **{**message, "topic": b"raw.\xff\xfe"})
    vector("message_publishers_encoding", MESSAGE,
           frame(fixint(4), uint32(7), str32("forex.eur"), bin32(b"hi"), NIL, uint16(0)),
           "from the topic on, the encoding is the publisher's", **message)
    vector("message_replayed", MESSAGE,
           frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL, uint64(12345), uint64(1700000000000000)),
           "with the offset and timestamp of an archived one (3.7)",
           **{**message, "offset": 12345, "timestamp": 1700000000000000})
    vector("message_trailing_unknown_fields", MESSAGE,
           frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL, NIL, NIL, text("later")),
           "fields of a later version, ignored", **message)
    # Queues (3.9)
    vector("subscribe_consumer", SUBSCRIBE,
           frame(fixint(6), fixint(5), fixint(7), text("orders.#"),
                 options(consumer=text("billing"), durable=TRUE, ack=TRUE, prefetch=fixint(10), ack_wait=fixint(5))),
           "a durable queue", True, request=5, subscription=7, filter="orders.#",
           options={"consumer": "billing", "durable": True, "ack": True, "prefetch": 10, "ack_wait": 5})
    delivery = {"subscription": 7, "sequence": 1, "attempt": 1, "topic": "forex.eur", "payload": hexed(b"hi"),
                "headers": None, "syntax": 0, "reply": None}
    vector("delivery_minimal", DELIVERY, frame(fixint(32), uint32(7), uint64(1), uint32(1), topic, hi),
           "subscription, sequence and attempt in their fixed forms", **delivery)
    vector("delivery_again", DELIVERY,
           frame(fixint(32), uint32(7), uint64(2**32), uint32(3), text("a/b"), hi, b"\x80", fixint(1), text("re")),
           "the third time, all fields",
           **{**delivery, "sequence": 2**32, "attempt": 3, "topic": "a/b", "headers": {}, "syntax": 1, "reply": "re"})
    acked: dict[str, Any] = {"subscription": 7, "sequence": 1}
    vector("ack", ACK, frame(fixint(33), fixint(7), fixint(1)), "", True, **acked, options=None)
    vector("ack_all", ACK, frame(fixint(33), fixint(7), uint16(300), options(all=TRUE)),
           "this delivery and all before it", True, subscription=7, sequence=300, options={"all": True})
    vector("nack", NACK, frame(fixint(34), fixint(7), fixint(1)), "again, at once", True, **acked, delay=None)
    vector("nack_delay", NACK, frame(fixint(34), fixint(7), fixint(1), float64(2.5)), "again, in 2.5 s", True,
           **acked, delay=2.5)
    vector("term", TERM, frame(fixint(35), fixint(7), fixint(1), text("no customer")), "never again", True,
           **acked, reason="no customer")
    vector("in_progress", IN_PROGRESS, frame(fixint(36), fixint(7), fixint(1)), "", True, **acked)
    # Queues for operators (3.10)
    vector("queue_add", QUEUE,
           frame(fixint(39), fixint(5), text("add"),
                 options(name=text("billing"), filters=array(array(text("orders.#"), fixint(0)),
                                                             array(text("site/+"), fixint(1))),
                         queue=options(messages_max=num(1000), dead_letter=text("dead.billing")))),
           "a durable queue with two filters", True, request=5, verb="add",
           arguments={"name": "billing", "filters": [["orders.#", 0], ["site/+", 1]],
                      "queue": {"messages_max": 1000, "dead_letter": "dead.billing"}})
    vector("queue_add_without_request", QUEUE,
           frame(fixint(39), NIL, text("add"), options(name=text("q"), filters=array(octets(b"raw.\xff")))),
           "a filter that is no array is one of syntax 0", True, request=None, verb="add",
           arguments={"name": "q", "filters": [hexed(b"raw.\xff")]})
    vector("queue_list", QUEUE, frame(fixint(39), fixint(5), text("list")), "the first page", True, request=5,
           verb="list", arguments=None)
    vector("queue_list_trailing", QUEUE,
           frame(fixint(39), fixint(5), text("list"), options(limit=num(50), colour=text("blue")), num(1)),
           "an argument and a field of a later version, ignored", request=5, verb="list",
           arguments={"limit": 50, "colour": "blue"})
    vector("queue_done", OK, frame(fixint(7), fixint(5), options(messages=num(3))), "three messages were purged", True,
           request=5, result={"messages": 3})
    vector("consumer_prefetch", CONSUMER,
           frame(fixint(37), fixint(6), fixint(7), options(prefetch=fixint(20), ack_wait=fixint(60))),
           "more at a time, and more time for each", True, request=6, subscription=7,
           options={"prefetch": 20, "ack_wait": 60})
    vector("consumer_pause", CONSUMER, frame(fixint(37), fixint(6), fixint(7), options(paused=TRUE)),
           "nothing more for now", True, request=6, subscription=7, options={"paused": True})
    vector("consumer_minimal", CONSUMER, frame(fixint(37), NIL, fixint(7)), "changes nothing, no answer", True,
           request=None, subscription=7, options=None)
    vector("consumer_info", CONSUMER_INFO, frame(fixint(38), fixint(7), options(active=TRUE)),
           "the active consumer from now on", True, subscription=7, info={"active": True})
    vector("replay", REPLAY,
           frame(fixint(48), fixint(1), fixint(7), text("forex.#"), options(offset=fixint(5), epoch=fixint(1))),
           "from offset 5 on, if it still names what it named in epoch 1", True, request=1, subscription=7,
           filter="forex.#", options={"offset": 5, "epoch": 1})
    vector("replay_part", REPLAY,
           frame(fixint(48), fixint(1), fixint(7), text("forex.#"), options(offset=fixint(5), end=fixint(9))),
           "offsets 5 to 8", True, request=1, subscription=7, filter="forex.#", options={"offset": 5, "end": 9})
    vector("replay_begun", OK,
           frame(fixint(7), fixint(1), options(
               epoch=fixint(1), archive=text("0f3a"), start=fixint(0), end=fixint(9), offset=fixint(5),
           )),
           "the archive 0f3a has offsets 0 to 8, and this begins at 5", True, request=1,
           result={"epoch": 1, "archive": "0f3a", "start": 0, "end": 9, "offset": 5})
    vector("replay_end", REPLAY_END, frame(fixint(49), fixint(7), fixint(5), fixint(1)),
           "what follows to subscription 7 is published now", True, subscription=7, offset=5, epoch=1)
    vector("message_empty_topic", MESSAGE, frame(fixint(4), uint32(7), text(""), octets(b"")), "",
           **{**message, "topic": "", "payload": b""})

    # Delayed messages for operators (3.11)
    vector("queue_delayed", QUEUE, frame(fixint(39), fixint(5), text("delayed"), options(limit=fixint(10))),
           "the ten that are due first", True, request=5, verb="delayed", arguments={"limit": 10})
    vector("queue_cancel", QUEUE, frame(fixint(39), fixint(6), text("cancel"), options(id=uint64(2**41))), "", True,
           request=6, verb="cancel", arguments={"id": 2**41})
    vector("ok_cancelled", OK, frame(fixint(7), fixint(6), options(cancelled=TRUE)), "", True,
           request=6, result={"cancelled": True})
    # deliver, of a new queue (3.9)
    vector("subscribe_deliver_offset", SUBSCRIBE,
           frame(fixint(6), fixint(5), fixint(7), text("orders.#"),
                 options(consumer=text("billing"), durable=TRUE, ack=TRUE,
                         deliver=options(offset=num(12345), epoch=fixint(1)))),
           "a queue that begins with archived messages, from an offset on", True, request=5, subscription=7,
           filter="orders.#",
           options={"consumer": "billing", "durable": True, "ack": True, "deliver": {"offset": 12345, "epoch": 1}})
    vector("subscribe_deliver_since", SUBSCRIBE,
           frame(fixint(6), fixint(5), fixint(7), text("orders.#"),
                 options(consumer=text("billing"), durable=TRUE, ack=TRUE,
                         deliver=options(since=uint64(1_700_000_000_000_000)))),
           "from a time on, in microseconds", True, request=5, subscription=7, filter="orders.#",
           options={"consumer": "billing", "durable": True, "ack": True,
                    "deliver": {"since": 1_700_000_000_000_000}})
    vector("subscribe_deliver_all", SUBSCRIBE,
           frame(fixint(6), fixint(5), fixint(7), text("orders.#"),
                 options(consumer=text("billing"), durable=TRUE, ack=TRUE, deliver=b"\x80")),
           "all that the archive has", True, request=5, subscription=7, filter="orders.#",
           options={"consumer": "billing", "durable": True, "ack": True, "deliver": {}})

    # RECEIPT
    taken = {"offset": None, "repeated": False, "delayed": False, "id": None}
    vector("receipt", RECEIPT, frame(fixint(5), fixint(7), fixint(3)), "routed to three", request=7, routed=3, **taken)
    vector("receipt_nobody", RECEIPT, frame(fixint(5), fixint(7), fixint(0)), "no one is listening",
           request=7, routed=0, **taken)
    vector("receipt_large", RECEIPT, frame(fixint(5), num(70000), num(1000)), "", request=70000, routed=1000, **taken)
    vector("receipt_trailing", RECEIPT, frame(fixint(5), fixint(7), fixint(3), NIL), "", request=7, routed=3, **taken)
    vector("receipt_repeated", RECEIPT, frame(fixint(5), fixint(7), fixint(0), NIL, TRUE),
           "the message was taken before (3.8)", True, request=7, routed=0, **{**taken, "repeated": True})
    vector("receipt_not_repeated", RECEIPT, frame(fixint(5), fixint(7), fixint(1), NIL, FALSE, NIL), "",
           request=7, routed=1, **taken)
    vector("receipt_delayed", RECEIPT, frame(fixint(5), fixint(7), fixint(0), NIL, NIL, TRUE),
           "the message is kept until it is due (3.3)", True, request=7, routed=0, **{**taken, "delayed": True})
    vector("receipt_delayed_id", RECEIPT, frame(fixint(5), fixint(7), fixint(0), NIL, NIL, TRUE, uint64(2**41)),
           "it can be cancelled by its id (3.11)", True,
           request=7, routed=0, **{**taken, "delayed": True, "id": 2**41})

    # SUBSCRIBE, OK, UNSUBSCRIBE, ENDED, CREDIT
    sub = {"request": 1, "subscription": 7, "filter": "forex.*", "options": None}
    vector("subscribe_minimal", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("forex.*")), "", True, **sub)
    vector("subscribe_nil_options", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("forex.*"), NIL), "", **sub)
    vector("subscribe_without_request", SUBSCRIBE, frame(fixint(6), NIL, fixint(7), text("forex.*")),
           "no OK comes; an error comes with request nil", True, **{**sub, "request": None})
    vector(
        "subscribe_all_options", SUBSCRIBE,
        frame(fixint(6), fixint(1), num(300), text("site/+/temp/#"),
              options(syntax=fixint(1), group=text("workers"), no_echo=TRUE, credit=num(100),
                      pending_messages=num(1000), after=num(5000000000))),
        "", True, request=1, subscription=300, filter="site/+/temp/#",
        options={"syntax": 1, "group": "workers", "no_echo": True, "credit": 100, "pending_messages": 1000,
                 "after": 5000000000},
    )
    vector("subscribe_option_defaults", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("forex.*"),
                 options(syntax=NIL, group=NIL, no_echo=FALSE, credit=NIL, pending_messages=NIL, after=NIL)),
           "options that are nil have their defaults", request=1, subscription=7, filter="forex.*",
           options={"syntax": None, "group": None, "no_echo": False, "credit": None, "pending_messages": None,
                    "after": None})
    vector("subscribe_where", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("stock.#"), options(where=text("close > 500"))),
           "only messages of which the selector is true", True, request=1, subscription=7, filter="stock.#",
           options={"where": "close > 500"})
    vector("subscribe_credit_zero", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("#"), options(credit=fixint(0))),
           "nothing is delivered until CREDIT comes: not the same as no credit option", True, request=1,
           subscription=7, filter="#", options={"credit": 0})
    vector("subscribe_bin_filter", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), octets(b"raw.\xff.*")), "", True,
           **{**sub, "filter": b"raw.\xff.*"})
    vector("subscribe_unknown_option", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("forex.*"), options(colour=text("blue")), fixint(1)),
           "an option and a field of a later version, ignored", **{**sub, "options": {"colour": "blue"}})
    vector("subscribe_empty_filter", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("")),
           "in dotted spelling: matches the empty topic, and nothing else", True, **{**sub, "filter": ""})
    vector("ok", OK, frame(fixint(7), fixint(1)), "", True, request=1, result=None)
    vector("ok_nil_result", OK, frame(fixint(7), fixint(1), NIL), "", request=1, result=None)
    vector("ok_unsubscribed", OK, frame(fixint(7), fixint(2), options(delivered=num(1000), dropped=num(3))), "", True,
           request=2, result={"delivered": 1000, "dropped": 3})
    vector("unsubscribe_minimal", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7)), "", True,
           request=2, subscription=7, after=0)
    vector("unsubscribe_nil_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), NIL), "", request=2,
           subscription=7, after=0)
    vector("unsubscribe_zero_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), fixint(0)), "", request=2,
           subscription=7, after=0)
    vector("unsubscribe_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), num(2**40)), "", True, request=2,
           subscription=7, after=2**40)
    vector("unsubscribe_without_request", UNSUBSCRIBE, frame(fixint(8), NIL, fixint(7)), "", True, request=None,
           subscription=7, after=0)
    vector("ended", ENDED, frame(fixint(9), fixint(7), text("after"), num(1000), fixint(0)), "", True, subscription=7,
           reason="after", delivered=1000, dropped=0)
    vector("ended_trailing", ENDED, frame(fixint(9), uint32(7), text("after"), uint64(5), uint64(1), text("x")), "",
           subscription=7, reason="after", delivered=5, dropped=1)
    vector("credit", CREDIT, frame(fixint(10), fixint(7), num(500)), "", True, subscription=7, messages=500)
    vector("credit_non_minimal", CREDIT, frame(fixint(10), uint32(7), uint64(500)), "", subscription=7, messages=500)

    # PING, PONG, ERROR, GOODBYE
    vector("ping_minimal", PING, frame(fixint(11)), "no token: it is nil", True, token=None)
    vector("ping_nil", PING, frame(fixint(11), NIL), "", token=None)
    vector("ping_token", PING, frame(fixint(11), num(3000000000)), "", True, token=3000000000)
    vector("pong_minimal", PONG, frame(fixint(12)), "", True, token=None)
    vector("pong_nil", PONG, frame(fixint(12), NIL), "", token=None)
    vector("pong_token", PONG, frame(fixint(12), num(3000000000)), "", True, token=3000000000)
    vector("error", ERROR,
           frame(fixint(13), fixint(4), text("invalid_filter"), text("a+ is no level of a filter"),
                 options(position=fixint(1))),
           "", True, request=4, code="invalid_filter", text="a+ is no level of a filter", details={"position": 1})
    vector("error_of_no_request", ERROR, frame(fixint(13), NIL, text("not_permitted"), text("no")), "", True,
           request=None, code="not_permitted", text="no", details=None)
    vector("error_unknown_code", ERROR, frame(fixint(13), fixint(4), text("too_early"), text("come back"), NIL, NIL),
           "a code of a later version; it refuses request 4 all the same", request=4, code="too_early",
           text="come back", details=None)
    vector("goodbye_minimal", GOODBYE, frame(fixint(14), text("normal")), "", True, reason="normal", text=None)
    vector("goodbye_text", GOODBYE, frame(fixint(14), text("shutting_down"), text("back in a minute")), "", True,
           reason="shutting_down", text="back in a minute")
    vector("goodbye_trailing", GOODBYE, frame(fixint(14), text("normal"), NIL, num(1)), "", reason="normal", text=None)

    # HELD
    vector("held", HELD, frame(fixint(15), TRUE), "nothing more is read from this client for a while", True,
           held=True, seconds=None)
    vector("held_no_more", HELD, frame(fixint(15), FALSE, float64(0.25)), "", True, held=False, seconds=0.25)
    vector("held_no_more_integer", HELD, frame(fixint(15), FALSE, fixint(2)), "", True, held=False, seconds=2)
    vector("held_trailing", HELD, frame(fixint(15), TRUE, NIL, num(1)), "", held=True, seconds=None)
