"""Packets in bytes: the examples of both specifications, and one of each packet with all it may carry.

An entry is its version, its bytes and the packet they mean, each the encoding of the other. Where a packet can be
written in more than one way only the shortest is here; test_decoding.py has the others.
"""

from dataclasses import dataclass

from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
    WillFields,
)
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    version: Version
    octets: bytes
    packet: Packet

    def __str__(self) -> str:
        return f"{self.version.name[5:]} {self.name}"


def entry(name: str, version: Version, written: str, packet: Packet) -> Entry:
    """`written` is hexadecimal, with 'text' between quotes."""
    parts = written.split("'")
    octets = b"".join(part.encode() if at % 2 else bytes.fromhex(part) for at, part in enumerate(parts))
    return Entry(name, version, octets, packet)


EXPLAINED = Properties(reason_string="why", user_properties=(("a", "1"), ("a", "2")))
EXPLAINED_HEX = "14 1f 0003'why' 26 0001'a' 0001'1' 26 0001'a' 0001'2'"

CORPUS = (
    # 3.1.1, 3.1.2.11 (figure 3.6): user name, password, a will of QoS 1, clean session, keep alive 10
    entry("CONNECT of figure 3.6", V3,
          "10 1e 0004'MQTT' 04 ce 000a 0003'cid' 0001'w' 0002'by' 0001'u' 0003'pwd'",
          Connect("cid", V3, True, 10, WillFields("w", b"by", 1), "u", b"pwd")),
    entry("CONNECT, the least", V3, "10 0c 0004'MQTT' 04 00 0000 0000", Connect("", V3, clean_start=False)),
    entry("CONNECT, a retained will of QoS 2 and no payload", V3, "10 11 0004'MQTT' 04 34 0000 0000 0001'w' 0000",
          Connect("", V3, clean_start=False, will=WillFields("w", b"", 2, True))),
    # 5.0, 3.1.2.12 (figure 3-6): as in 3.1.1, and a Session Expiry Interval of 10
    entry("CONNECT of figure 3-6", V5,
          "10 25 0004'MQTT' 05 ce 000a 05 11 0000000a 0003'cid' 00 0001'w' 0002'by' 0001'u' 0003'pwd'",
          Connect("cid", V5, True, 10, WillFields("w", b"by", 1), "u", b"pwd", Properties(session_expiry_interval=10))),
    entry("CONNECT, a password without a user name", V5, "10 10 0004'MQTT' 05 42 0000 00 0000 0001'p'",
          Connect("", V5, password=b"p")),
    entry("CONNECT with all properties", V5,
          "10 65 0004'MQTT' 05 2e ffff"
          " 29 11 ffffffff 15 0005'SCRAM' 16 0002 00ff 17 00 19 01 21 0001 22 ffff 26 0001'k' 0002'\u00e9' 27 00000400"
          " 0001'c'"
          " 28 01 01 02 00000e10 03 000a'text/plain' 08 0001'r' 09 0001 07 18 0000003c 26 0001'x' 0001'y'"
          " 0001'w' 0000",
          Connect("c", V5, True, 0xFFFF,
                  WillFields("w", b"", 1, True,
                       Properties(payload_format_indicator=1, message_expiry_interval=3600, content_type="text/plain",
                                  response_topic="r", correlation_data=b"\7", will_delay_interval=60,
                                  user_properties=(("x", "y"),))),
                  properties=Properties(
                      session_expiry_interval=0xFFFFFFFF, authentication_method="SCRAM",
                      authentication_data=b"\0\xff", request_problem_information=False,
                      request_response_information=True, receive_maximum=1, topic_alias_maximum=0xFFFF,
                      user_properties=(("k", "é"),), maximum_packet_size=1024))),
    entry("CONNACK", V3, "20 02 00 00", ConnAck(False)),
    entry("CONNACK, session present", V3, "20 02 01 00", ConnAck(True)),
    entry("CONNACK, refused", V3, "20 02 00 05", ConnAck(False, R.NOT_AUTHORIZED)),
    entry("CONNACK", V5, "20 03 00 00 00", ConnAck(False)),
    entry("CONNACK with all properties", V5,
          "20 50 01 00 4d 11 00000000 12 0002'id' 13 003c 15 0001'm' 16 0001'd' 1a 0003'inf' 1c 0001's' 1f 0001'r'"
          " 21 0014 22 000a 24 01 25 01 26 0001'a' 0001'1' 26 0001'b' 0001'2' 26 0001'a' 0001'3' 27 0fffffff"
          " 28 01 29 00 2a 01",
          ConnAck(True, R.SUCCESS, Properties(
              session_expiry_interval=0, assigned_client_identifier="id", server_keep_alive=60,
              authentication_method="m", authentication_data=b"d", response_information="inf", server_reference="s",
              reason_string="r", receive_maximum=20, topic_alias_maximum=10, maximum_qos=1, retain_available=True,
              user_properties=(("a", "1"), ("b", "2"), ("a", "3")), maximum_packet_size=0x0FFFFFFF,
              wildcard_subscription_available=True, subscription_identifiers_available=False,
              shared_subscription_available=True))),
    # 3.3.2.3 (3.1.1) and 3.3.2.4 (5.0): topic a/b, packet identifier 10
    entry("PUBLISH of figure 3.11", V3, "32 07 0003'a/b' 000a", Publish("a/b", b"", 1, packet_id=10)),
    entry("PUBLISH of figure 3-9", V5, "32 08 0003'a/b' 000a 00", Publish("a/b", b"", 1, packet_id=10)),
    entry("PUBLISH of QoS 0", V3, "31 08 0001't' 0000000001", Publish("t", b"\0\0\0\0\1", retain=True)),
    entry("PUBLISH of QoS 2, again", V3, "3d 08 0001't' ffff'abc'", Publish("t", b"abc", 2, True, True, 65535)),
    entry("PUBLISH of QoS 0, empty", V5, "30 04 0001't' 00", Publish("t")),
    entry("PUBLISH by an alias alone", V5, "30 07 0000 03 23 0005 00",
          Publish("", b"\0", properties=Properties(topic_alias=5))),
    entry("PUBLISH with all properties", V5,
          "3b 33 0001't' 0001 2c 01 00 02 ffffffff 03 0001'c' 08 0003'r/s' 09 0002 0001 0b 01 0b ffffff7f 23 ffff"
          " 26 0000 0000 26 0001'k' 0001'v''!'",
          Publish("t", b"!", 1, True, True, 1, Properties(
              payload_format_indicator=0, message_expiry_interval=0xFFFFFFFF, content_type="c", response_topic="r/s",
              correlation_data=b"\0\1", subscription_identifiers=(1, 268_435_455), topic_alias=65535,
              user_properties=(("", ""), ("k", "v"))))),
    *(
        one
        for first, packet in (("40", PubAck), ("50", PubRec), ("62", PubRel), ("70", PubComp))
        for failure in (R.PACKET_IDENTIFIER_NOT_FOUND if packet in (PubRel, PubComp) else R.QUOTA_EXCEEDED,)
        for one in (
            entry(packet.__name__.upper(), V3, first + "02 1234", packet(0x1234)),
            entry(packet.__name__.upper(), V5, first + "02 1234", packet(0x1234)),
            entry(f"{packet.__name__.upper()} with a reason code", V5, f"{first} 03 1234 {failure:02x}",
                  packet(0x1234, failure)),
            entry(f"{packet.__name__.upper()} explained", V5, f"{first} 18 1234 00 {EXPLAINED_HEX}",
                  packet(0x1234, R.SUCCESS, EXPLAINED)),
        )
    ),
    # 3.8.3.1 (3.1.1) and 3.8.3.2 (5.0): a/b at QoS 1, c/d at QoS 2
    entry("SUBSCRIBE of figure 3.23", V3, "82 0e 000a 0003'a/b' 01 0003'c/d' 02",
          Subscribe(10, (Subscription("a/b", 1), Subscription("c/d", 2)))),
    entry("SUBSCRIBE of figure 3-22", V5, "82 0f 000a 00 0003'a/b' 01 0003'c/d' 02",
          Subscribe(10, (Subscription("a/b", 1), Subscription("c/d", 2)))),
    entry("SUBSCRIBE with all options", V5,
          "82 24 0001 0a 0b 80 01 26 0001'a' 0001'b' 0001'#' 2e 0003'+/+' 19 000a'$share/g/t' 00",
          Subscribe(1, (Subscription("#", 2, True, True, 2), Subscription("+/+", 1, False, True, 1),
                        Subscription("$share/g/t")),
                    Properties(subscription_identifiers=(128,), user_properties=(("a", "b"),)))),
    # 3.9.3.1 (3.1.1): granted QoS 0, granted QoS 2, failure
    entry("SUBACK of figure 3.27", V3, "90 05 000a 00 02 80",
          SubAck(10, (R.GRANTED_QOS_0, R.GRANTED_QOS_2, R.UNSPECIFIED_ERROR))),
    entry("SUBACK", V5, "90 06 000a 00 00 02 87", SubAck(10, (R.GRANTED_QOS_0, R.GRANTED_QOS_2, R.NOT_AUTHORIZED))),
    entry("SUBACK explained", V5, f"90 18 000a {EXPLAINED_HEX} 01", SubAck(10, (R.GRANTED_QOS_1,), EXPLAINED)),
    # 3.10.3.1: a/b and c/d
    entry("UNSUBSCRIBE of figure 3.30", V3, "a2 0c 000a 0003'a/b' 0003'c/d'", Unsubscribe(10, ("a/b", "c/d"))),
    entry("UNSUBSCRIBE of figure 3-30", V5, "a2 0d 000a 00 0003'a/b' 0003'c/d'", Unsubscribe(10, ("a/b", "c/d"))),
    entry("UNSUBSCRIBE explained", V5, "a2 0d 000a 07 26 0001'a' 0001'b' 0001'#'",
          Unsubscribe(10, ("#",), Properties(user_properties=(("a", "b"),)))),
    entry("UNSUBACK", V3, "b0 02 000a", UnsubAck(10)),
    entry("UNSUBACK", V5, "b0 05 000a 00 00 11", UnsubAck(10, (R.SUCCESS, R.NO_SUBSCRIPTION_EXISTED))),
    entry("UNSUBACK explained", V5, f"b0 18 000a {EXPLAINED_HEX} 00", UnsubAck(10, (R.SUCCESS,), EXPLAINED)),
    *(entry("PINGREQ", version, "c0 00", PingReq()) for version in Version),
    *(entry("PINGRESP", version, "d0 00", PingResp()) for version in Version),
    *(entry("DISCONNECT", version, "e0 00", Disconnect()) for version in Version),
    entry("DISCONNECT with a will", V5, "e0 01 04", Disconnect(R.DISCONNECT_WITH_WILL_MESSAGE)),
    entry("DISCONNECT with all properties", V5, "e0 0f 9c 0d 11 00000001 1c 0001's' 1f 0001'r'",
          Disconnect(R.USE_ANOTHER_SERVER, Properties(session_expiry_interval=1, server_reference="s",
                                                      reason_string="r"))),
    entry("AUTH, success", V5, "f0 00", Auth()),
    entry("AUTH, continue", V5, "f0 0b 18 09 15 0001'm' 16 0002 0001",
          Auth(R.CONTINUE_AUTHENTICATION, Properties(authentication_method="m", authentication_data=b"\0\1"))),
)  # fmt: skip

# Of each kind one that a client may send, to put behind others.
PING = b"\xc0\x00"
