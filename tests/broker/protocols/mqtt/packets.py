"""Any packet of a version, for hypothesis: all that `encode` accepts, and nothing that it does not."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.fixed_header import PacketType
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
from fanlight_broker.protocols.mqtt.properties import NONE, PROPERTIES, Properties, PropertyPlace
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY, REASONS_OF_RETURN_CODES
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version

# How fast packets are drawn says something of the machine and its load, and nothing of the codec.
unhurried = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=20)
levels = st.one_of(st.just("+"), st.text(alphabet="ab é$", max_size=4))
filters = st.one_of(
    st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool),
    st.lists(levels, max_size=3).map(lambda words: "/".join([*words, "#"])),
).filter(lambda filter: not filter.startswith("$share/"))
shared = st.builds("$share/{}/{}".format, st.text(alphabet="gé $", min_size=1, max_size=4), filters)
binary = st.binary(max_size=40)
packet_ids = st.integers(1, 0xFFFF)
qos = st.integers(0, 2)
two_bytes = st.integers(0, 0xFFFF)
four_bytes = st.integers(0, 0xFFFF_FFFF)

VALUES = {
    "payload_format_indicator": st.integers(0, 1), "message_expiry_interval": four_bytes, "content_type": text,
    "response_topic": names, "correlation_data": binary,
    "subscription_identifiers": st.lists(st.integers(1, 268_435_455), max_size=3).map(tuple),
    "session_expiry_interval": four_bytes, "assigned_client_identifier": text, "server_keep_alive": two_bytes,
    "authentication_method": text, "authentication_data": binary, "request_problem_information": st.booleans(),
    "will_delay_interval": four_bytes, "request_response_information": st.booleans(), "response_information": text,
    "server_reference": text, "reason_string": text, "receive_maximum": st.integers(1, 0xFFFF),
    "topic_alias_maximum": two_bytes, "topic_alias": st.integers(1, 0xFFFF), "maximum_qos": st.integers(0, 1),
    "retain_available": st.booleans(), "user_properties": st.lists(st.tuples(text, text), max_size=3).map(tuple),
    "maximum_packet_size": st.integers(1, 0xFFFF_FFFF), "wildcard_subscription_available": st.booleans(),
    "subscription_identifiers_available": st.booleans(), "shared_subscription_available": st.booleans(),
}  # fmt: skip


def properties(version: Version, place: PropertyPlace) -> st.SearchStrategy[Properties]:
    """Any that are legal in a place; none in 3.1.1."""
    if version is V3:
        return st.just(NONE)
    values = {row.name: VALUES[row.name] for row in PROPERTIES if place in row.places}
    if place is PropertyPlace.SUBSCRIBE:
        values["subscription_identifiers"] = st.lists(st.integers(1, 268_435_455), max_size=1).map(tuple)
    found = st.fixed_dictionaries({}, optional=values).map(lambda some: Properties(**some))
    if place is PropertyPlace.CONNECT:  # data without a method is an error
        return found.filter(lambda one: one.authentication_data is None or one.authentication_method is not None)
    return found


def reasons(kind: PacketType) -> st.SearchStrategy[R]:
    return st.sampled_from(sorted(CARRIED_BY[kind]))


def subscriptions(version: Version) -> st.SearchStrategy[Subscription]:
    if version is V3:
        return st.builds(Subscription, st.one_of(filters, shared), qos)
    options = (st.booleans(), st.integers(0, 2))
    return st.one_of(
        st.builds(Subscription, filters, qos, st.booleans(), *options),
        st.builds(Subscription, shared, qos, st.just(False), *options),
    )


def packets(kind: PacketType, version: Version) -> st.SearchStrategy[Packet]:
    """Any packet of a type."""
    five = version is V5

    def having(place: PropertyPlace) -> st.SearchStrategy[Properties]:
        return properties(version, place)

    def listed(one: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
        return st.lists(one, min_size=1, max_size=4).map(tuple)

    match kind:
        case PacketType.CONNECT:
            will = st.builds(WillFields, names, binary, qos, st.booleans(), having(PropertyPlace.WILL))
            return st.builds(
                Connect, text, st.just(version), st.booleans(), two_bytes, st.none() | will, st.none() | text,
                st.none() | binary, having(PropertyPlace.CONNECT),
            ).filter(lambda one: five or one.password is None or one.user_name is not None)  # fmt: skip
        case PacketType.CONNACK:
            codes = reasons(kind) if five else st.sampled_from(sorted(REASONS_OF_RETURN_CODES.values()))
            return st.one_of(
                st.builds(ConnAck, st.just(False), codes, having(PropertyPlace.CONNACK)),
                st.builds(ConnAck, st.just(True), st.just(R.SUCCESS), having(PropertyPlace.CONNACK)),
            )
        case PacketType.PUBLISH:
            with_id = st.builds(
                Publish, names, binary, st.integers(1, 2), st.booleans(), st.booleans(), packet_ids,
                having(PropertyPlace.PUBLISH),
            )  # fmt: skip
            nothing = st.just(False)
            plain = st.builds(
                Publish, names, binary, st.just(0), st.booleans(), nothing, st.none(), having(PropertyPlace.PUBLISH)
            )
            return with_id | plain
        case PacketType.PUBACK | PacketType.PUBREC | PacketType.PUBREL | PacketType.PUBCOMP:
            made = {"PUBACK": PubAck, "PUBREC": PubRec, "PUBREL": PubRel, "PUBCOMP": PubComp}[kind.name]
            codes = reasons(kind) if five else st.just(R.SUCCESS)
            return st.builds(made, packet_ids, codes, having(PropertyPlace(kind)))
        case PacketType.SUBSCRIBE:
            return st.builds(Subscribe, packet_ids, listed(subscriptions(version)), having(PropertyPlace.SUBSCRIBE))
        case PacketType.SUBACK:
            codes = reasons(kind) if five else st.sampled_from([R(0), R(1), R(2), R.UNSPECIFIED_ERROR])
            return st.builds(SubAck, packet_ids, listed(codes), having(PropertyPlace.SUBACK))
        case PacketType.UNSUBSCRIBE:
            return st.builds(Unsubscribe, packet_ids, listed(filters | shared), having(PropertyPlace.UNSUBSCRIBE))
        case PacketType.UNSUBACK:
            codes = listed(reasons(kind)) if five else st.just(())
            return st.builds(UnsubAck, packet_ids, codes, having(PropertyPlace.UNSUBACK))
        case PacketType.DISCONNECT:
            codes = reasons(kind) if five else st.just(R.SUCCESS)
            return st.builds(Disconnect, codes, having(PropertyPlace.DISCONNECT))
        case PacketType.AUTH:
            named = having(PropertyPlace.AUTH).filter(lambda one: one.authentication_method is not None)
            return st.builds(Auth, reasons(kind), named) | st.just(Auth())
        case PacketType.PINGREQ:
            return st.just(PingReq())
        case PacketType.PINGRESP:
            return st.just(PingResp())
