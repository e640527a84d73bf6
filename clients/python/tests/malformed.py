"""What is wrong, and what the broker says to it, for make_vectors.py: a vector a line."""

import struct
from math import inf
from typing import Any

from .frame_bytes import (
    ACK,
    FALSE,
    IN_PROGRESS,
    NACK,
    NIL,
    TERM,
    TRUE,
    array,
    fixint,
    float64,
    frame,
    framed,
    mapping,
    nested,
    num,
    octets,
    options,
    text,
    uint32,
    uint64,
)

INVALID: list[dict[str, Any]] = []


def invalid(name: str, data: bytes, code: str = "protocol_error", closes: bool = True, note: str = "",
            **expected: Any) -> None:
    INVALID.append({"name": name, "bytes": data.hex(), "code": code, "closes": closes, "note": note, **expected})


def malformed() -> None:
    topic, hi = text("forex.eur"), octets(b"hi")

    def publish(*behind: bytes) -> bytes:
        return frame(fixint(3), *behind)

    # Framing
    invalid("zero_length", framed(b""), note="a body has at least one byte")
    invalid("length_all_ones", b"\xff\xff\xff\xff", "frame_too_large", note="refused by its length: no body follows")
    invalid("length_one_gigabyte", struct.pack(">I", 2**30), "frame_too_large", note="no body follows")
    invalid("truncated_array", framed(b"\x94\x03\xc0" + topic), note="an array of four that ends after three")
    invalid("truncated_string", framed(b"\x94\x03\xc0\xa9forex"), note="a str of nine bytes of which five are there")
    invalid("truncated_bin", framed(b"\x94\x03\xc0" + topic + b"\xc6\x00\x10\x00\x00hi"),
            note="a bin of 1 MiB of which two bytes are there")
    invalid("array_of_four_thousand_million", framed(b"\xdd\xff\xff\xff\xff\x0b"), note="must not be allocated for")
    invalid("leftover_bytes", framed(b"\x91\x0b\xc0"), note="a whole PING, and one byte more")
    invalid("two_arrays", framed(b"\x91\x0b\x91\x0b"))
    invalid("not_an_array_map", framed(b"\x81\x0b\xc0"))
    invalid("not_an_array_integer", framed(b"\x0b"))
    invalid("not_an_array_str", framed(text("hello")))
    invalid("never_used_byte", framed(b"\xc1"), note="c1 is no msgpack")
    invalid("never_used_byte_inside", framed(b"\x92\x0b\xc1"))
    invalid("empty_array", framed(b"\x90"), note="no type")
    invalid("http_request", b"GET / HTTP/1.1\r\n\r\n", "frame_too_large", note="read as a length of 1,195,725,856")
    # Type
    invalid("type_nil", framed(b"\x91\xc0"))
    invalid("type_str", framed(b"\x91" + text("PING")))
    invalid("type_negative", framed(b"\x91\xff"))
    invalid("type_in_two_bytes", framed(b"\x91\xcc\x0b"), note="PING, but not in the one-byte form")
    invalid("type_above_127", framed(b"\x91\xcc\x80"))
    for number in (0, 16, 31, 40, 41, 50, 127):
        reserved = " (reserved)" if 32 <= number < 56 else ""
        invalid(f"unknown_type_{number}", frame(fixint(number), fixint(1)), "unsupported", False,
                f"a type not known to version 1{reserved}; the connection goes on", request=None)
    invalid("replay_without_archive", frame(fixint(48), fixint(1)), "unsupported", False,
            "a type that only brokers with an archive know (3.7); the connection goes on", request=None)
    # Nesting and extensions
    invalid("nested_nine_levels", publish(NIL, topic, hi, NIL, NIL, NIL, nested(8)),
            note="in a field that would be ignored; the frame's own array is the first level")
    invalid("nested_two_thousand_levels", framed(b"\x95\x03\xc0" + topic + hi + nested(2000)))
    invalid("nested_maps", framed(b"\x92\x0b" + b"\x81\xa1k" * 40 + b"\xc0"))
    invalid("extension_in_trailing_field", frame(fixint(11), NIL, b"\xd4\x05\x00"), note="fixext 1")
    invalid("extension_as_payload", publish(NIL, topic, b"\xd5\x05hi"), note="fixext 2")
    invalid("timestamp_in_header", publish(NIL, topic, hi, mapping((text("at"), b"\xd6\xff\x00\x00\x00\x01"))),
            note="msgpack's timestamp is an extension, too")
    invalid("extension_with_length", frame(fixint(11), b"\xc7\x03\x05abc"), note="ext 8")
    # Fields of the wrong kind
    invalid("publish_without_payload", publish(NIL, topic))
    invalid("publish_payload_nil", publish(NIL, topic, NIL), note="the payload has no default")
    invalid("publish_payload_str", publish(NIL, topic, text("hi")), note="a payload is bin")
    invalid("publish_topic_nil", publish(NIL, NIL, hi))
    invalid("publish_topic_integer", publish(NIL, fixint(5), hi))
    invalid("publish_topic_invalid_utf8", publish(NIL, text(b"raw.\xff"), hi), note="such a topic must be bin")
    invalid("publish_topic_surrogate", publish(NIL, text(b"\xed\xa0\x80"), hi), note="U+D800 is not UTF-8")
    invalid("publish_topic_overlong", publish(NIL, text(b"\xc0\xaf"), hi), note="an overlong form of a slash")
    invalid("publish_request_negative", publish(fixint(-1), topic, hi))
    invalid("publish_request_too_large", publish(uint64(2**32), topic, hi))
    invalid("publish_request_str", publish(text("7"), topic, hi))
    invalid("publish_request_bool", publish(TRUE, topic, hi))
    invalid("publish_request_float", publish(float64(7.0), topic, hi))
    invalid("publish_headers_array", publish(NIL, topic, hi, array(text("a"))))
    invalid("publish_headers_str", publish(NIL, topic, hi, text("a")))
    invalid("publish_header_key_integer", publish(NIL, topic, hi, mapping((fixint(1), fixint(1)))))
    invalid("publish_header_key_bin", publish(NIL, topic, hi, mapping((octets(b"k"), fixint(1)))))
    invalid("publish_header_key_invalid_utf8", publish(NIL, topic, hi, mapping((text(b"\xff"), fixint(1)))))
    invalid("publish_header_key_too_long", publish(NIL, topic, hi, mapping((text("k" * 256), fixint(1)))))
    invalid("publish_header_value_map", publish(NIL, topic, hi, mapping((text("k"), b"\x80"))))
    invalid("publish_header_value_nested_array", publish(NIL, topic, hi, mapping((text("k"), array(array())))))
    invalid("publish_header_value_invalid_utf8", publish(NIL, topic, hi, mapping((text("k"), text(b"\xff")))))
    for name, bad in (
        ("str", text("q1.0")),
        ("empty", array()),
        ("of_two", array(text("p"), fixint(1))),
        ("of_four", array(text("p"), fixint(1), fixint(1), NIL)),
        ("producer_empty", array(text(""), fixint(1), fixint(1))),
        ("producer_256_bytes", array(text("p" * 256), fixint(1), fixint(1))),
        ("producer_bin", array(octets(b"p"), fixint(1), fixint(1))),
        ("producer_not_utf8", array(text(b"\xff"), fixint(1), fixint(1))),
        ("batch_negative", array(text("p"), fixint(-1), fixint(1))),
        ("batch_nil", array(text("p"), NIL, fixint(1))),
        ("sequence_float", array(text("p"), fixint(1), float64(1.0))),
        ("map", options(producer=text("p"))),
    ):
        invalid(f"publish_mark_{name}", publish(fixint(5), topic, hi, NIL, NIL, NIL, bad), request=5)
    invalid("publish_header_reserved_key", publish(NIL, topic, hi, mapping((text("$seq"), fixint(1)))),
            note="section 8: keys that begin with $")
    for name, bad in (
        ("array", array()), ("with_integer_key", mapping((fixint(1), fixint(1)))),
        ("delay_negative", options(delay=fixint(-1))), ("delay_str", options(delay=text("5"))),
        ("delay_nan", options(delay=float64(float("nan")))), ("deliver_at_infinite", options(deliver_at=float64(inf))),
        ("delay_and_deliver_at", options(delay=fixint(1), deliver_at=num(2_000_000_000))),
    ):
        invalid(f"publish_options_{name}", publish(fixint(5), topic, hi, NIL, NIL, NIL, NIL, bad), request=5)
    invalid("publish_syntax_str", publish(NIL, topic, hi, NIL, text("mqtt")))
    invalid("publish_reply_integer", publish(NIL, topic, hi, NIL, NIL, fixint(1)))
    invalid("subscribe_without_filter", frame(fixint(6), fixint(1), fixint(7)))
    invalid("subscribe_filter_nil", frame(fixint(6), fixint(1), fixint(7), NIL))
    invalid("subscribe_subscription_nil", frame(fixint(6), fixint(1), NIL, text("a")))
    invalid("subscribe_subscription_too_large", frame(fixint(6), fixint(1), uint64(2**32), text("a")))
    invalid("subscribe_options_array", frame(fixint(6), fixint(1), fixint(7), text("a"), array()))
    invalid("subscribe_option_key_integer", frame(fixint(6), fixint(1), fixint(7), text("a"),
                                                  mapping((fixint(1), fixint(1)))))
    invalid("subscribe_group_integer", frame(fixint(6), fixint(1), fixint(7), text("a"), options(group=fixint(1))))
    invalid("subscribe_no_echo_str", frame(fixint(6), fixint(1), fixint(7), text("a"), options(no_echo=text("yes"))))
    invalid("subscribe_credit_negative", frame(fixint(6), fixint(1), fixint(7), text("a"), options(credit=fixint(-1))))
    invalid("unsubscribe_without_subscription", frame(fixint(8), fixint(1)))
    invalid("unsubscribe_after_str", frame(fixint(8), fixint(1), fixint(7), text("5")))
    invalid("credit_without_messages", frame(fixint(10), fixint(7)))
    invalid("credit_negative", frame(fixint(10), fixint(7), fixint(-5)))
    invalid("ping_token_str", frame(fixint(11), text("x")))
    invalid("ping_token_too_large", frame(fixint(11), uint64(2**32)))
    invalid("goodbye_without_reason", frame(fixint(14)))
    # Frames that are not a client's, or not now
    invalid("second_hello", frame(fixint(1), fixint(1), b"\x80"))
    invalid("welcome_from_client", frame(fixint(2), fixint(1), b"\x80"), note="a frame that only brokers send")
    invalid("message_from_client", frame(fixint(4), uint32(7), topic, hi), note="a frame that only brokers send")
    invalid("ok_from_client", frame(fixint(7), fixint(1)), note="a frame that only brokers send")
    # Well-formed, and refused
    invalid("publish_mqtt_empty_topic", publish(fixint(5), text(""), hi, NIL, fixint(1)), "invalid_topic", False,
            request=5)
    invalid("publish_mqtt_empty_topic_without_request", publish(NIL, text(""), hi, NIL, fixint(1)), "invalid_topic",
            False, request=None)
    invalid("publish_unknown_syntax", publish(fixint(5), topic, hi, NIL, fixint(2)), "unsupported", False, request=5)
    invalid("publish_sys", publish(fixint(5), text("$SYS.load"), hi), "not_permitted", False, request=5)
    invalid("publish_sys_mqtt", publish(fixint(5), text("$SYS/load"), hi, NIL, fixint(1)), "not_permitted", False,
            request=5)
    invalid("subscribe_mqtt_hash_inside",
            frame(fixint(6), fixint(5), fixint(7), text("a/#/b"), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_mqtt_plus_in_word",
            frame(fixint(6), fixint(5), fixint(7), text("a+/b"), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_mqtt_empty", frame(fixint(6), fixint(5), fixint(7), text(""), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_unknown_syntax", frame(fixint(6), fixint(5), fixint(7), text("a"), options(syntax=fixint(9))),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_without_ack",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text("c"))),
            "unsupported", False, "deliveries of a queue are acknowledged", request=5)
    invalid("subscribe_ack_without_consumer", frame(fixint(6), fixint(5), fixint(7), text("a"), options(ack=TRUE)),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_with_credit",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text("c"), ack=TRUE, credit=fixint(1))),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_empty",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text(""), ack=TRUE)))
    for number, name in ((ACK, "ack"), (NACK, "nack"), (TERM, "term"), (IN_PROGRESS, "in_progress")):
        invalid(f"{name}_unknown_subscription", frame(fixint(number), fixint(99), fixint(1)), "no_such_subscription",
                False, request=None)
    invalid("consumer_unknown_subscription", frame(fixint(37), fixint(5), fixint(99)), "no_such_subscription", False,
            request=5)
    invalid("consumer_prefetch_zero", frame(fixint(37), fixint(5), fixint(7), options(prefetch=fixint(0))), request=5)
    invalid("consumer_paused_integer", frame(fixint(37), fixint(5), fixint(7), options(paused=fixint(1))), request=5)
    invalid("consumer_info_from_client", frame(fixint(38), fixint(7), b"\x80"))
    invalid("ack_without_sequence", frame(fixint(33), fixint(7)))
    invalid("nack_delay_negative", frame(fixint(34), fixint(7), fixint(1), b"\xff"))
    invalid("queue_without_verb", frame(fixint(39), fixint(5)), request=5)
    invalid("queue_verb_integer", frame(fixint(39), fixint(5), fixint(1)), request=5)
    invalid("queue_arguments_array", frame(fixint(39), fixint(5), text("list"), array()), request=5)
    invalid("queue_request_str", frame(fixint(39), text("5"), text("list")))
    for name, verb, arguments in (
        ("add_without_name", "add", options(filters=array(text("a")))),
        ("add_without_filters", "add", options(name=text("q"))),
        ("add_filters_str", "add", options(name=text("q"), filters=text("a"))),
        ("add_filter_integer", "add", options(name=text("q"), filters=array(fixint(1)))),
        ("add_filter_empty_array", "add", options(name=text("q"), filters=array(array()))),
        ("add_name_256_bytes", "add", options(name=text("q" * 256), filters=array(text("a")))),
        ("add_overflow_unknown", "add",
         options(name=text("q"), filters=array(text("a")), queue=options(overflow=text("explode")))),
        ("list_limit_negative", "list", options(limit=b"\xff")),
        ("info_without_name", "info", options()),
        ("info_name_integer", "info", options(name=fixint(1))),
        ("peek_count_str", "peek", options(name=text("q"), count=text("5"))),
        ("remove_force_integer", "remove", options(name=text("q"), force=fixint(1))),
        ("move_to_integer", "move", options(name=text("q"), to=fixint(1))),
    ):
        invalid(f"queue_{name}", frame(fixint(39), fixint(5), text(verb), arguments), request=5)
    invalid("queue_unknown_verb", frame(fixint(39), fixint(5), text("explode")), "unsupported", False, request=5)
    invalid("queue_info_unknown", frame(fixint(39), fixint(5), text("info"), options(name=text("q"))),
            "no_such_consumer", False, request=5)
    invalid("queue_add_invalid_filter",
            frame(fixint(39), fixint(5), text("add"),
                  options(name=text("q"), filters=array(array(text("a/#/b"), fixint(1))))),
            "invalid_filter", False, request=5)
    invalid("delivery_from_client", frame(fixint(32), fixint(7), fixint(1), fixint(1), text("a"), octets(b"")))
    invalid("unsubscribe_unknown", frame(fixint(8), fixint(5), fixint(99)), "no_such_subscription", False, request=5)
    invalid("credit_unknown_subscription", frame(fixint(10), fixint(99), fixint(5)), "no_such_subscription", False,
            request=None)


FIRST_FRAMES: list[dict[str, Any]] = []
FROM_BROKER: list[dict[str, Any]] = []


def first_frames() -> None:
    def first(name: str, data: bytes, code: str, note: str = "") -> None:
        FIRST_FRAMES.append({"name": name, "bytes": data.hex(), "code": code, "closes": True, "note": note})

    first("publish_before_hello", frame(fixint(3), NIL, text("a"), octets(b"")), "protocol_error")
    first("subscribe_before_hello", frame(fixint(6), fixint(1), fixint(1), text("a")), "protocol_error")
    first("hello_version_zero", frame(fixint(1), fixint(0), b"\x80"), "unsupported_version", "there is no version 0")
    first("hello_version_str", frame(fixint(1), text("1"), b"\x80"), "protocol_error")
    first("hello_options_array", frame(fixint(1), fixint(1), array()), "protocol_error")
    first("hello_client_integer", frame(fixint(1), fixint(1), options(client=fixint(5))), "protocol_error")
    first("hello_too_large", struct.pack(">I", 4097), "frame_too_large",
          "the limit before the handshake is 4,096 bytes")
    first("http_request", b"GET / HTTP/1.1\r\n\r\n", "frame_too_large")


def from_broker() -> None:
    def wrong(name: str, data: bytes, note: str = "") -> None:
        FROM_BROKER.append({"name": name, "bytes": data.hex(), "note": note})

    topic, hi = text("forex.eur"), octets(b"hi")
    wrong("zero_length", framed(b""))
    wrong("leftover_bytes", framed(b"\x92\x07\x01\xc0"))
    wrong("truncated_array", framed(b"\x93\x05\x01"))
    wrong("type_in_two_bytes", framed(b"\x91\xcc\x0b"))
    wrong("nested_nine_levels", frame(fixint(7), fixint(1), NIL, nested(8)))
    wrong("nested_two_thousand_levels", framed(b"\x93\x07\x01" + nested(2000)))
    wrong("extension", frame(fixint(12), NIL, b"\xd4\x05\x00"))
    wrong("message_without_payload", frame(fixint(4), uint32(7), topic))
    wrong("message_subscription_nil", frame(fixint(4), NIL, topic, hi))
    wrong("message_topic_integer", frame(fixint(4), uint32(7), fixint(1), hi))
    wrong("message_payload_str", frame(fixint(4), uint32(7), topic, text("hi")))
    wrong("message_header_key_integer", frame(fixint(4), uint32(7), topic, hi, mapping((fixint(1), NIL))))
    wrong("message_header_value_map", frame(fixint(4), uint32(7), topic, hi, mapping((text("k"), b"\x80"))))
    wrong("message_syntax_unknown", frame(fixint(4), uint32(7), topic, hi, NIL, fixint(2)),
          "a client cannot guess how such a topic is spelled")
    wrong("message_reply_integer", frame(fixint(4), uint32(7), topic, hi, NIL, NIL, fixint(2)))
    wrong("receipt_without_routed", frame(fixint(5), fixint(7)))
    wrong("receipt_negative", frame(fixint(5), fixint(7), fixint(-1)))
    wrong("ok_result_array", frame(fixint(7), fixint(1), array()))
    wrong("ended_without_reason", frame(fixint(9), fixint(7)))
    wrong("error_code_integer", frame(fixint(13), NIL, fixint(5), text("x")))
    wrong("goodbye_without_reason", frame(fixint(14)))
    wrong("held_nil", frame(fixint(15), NIL))
    wrong("held_seconds_str", frame(fixint(15), FALSE, text("2")))
