"""PUBLISH from a client, where the compiled lane leaves it to Python (3.3, 4.3), and acknowledgements.

    QoS 0, 1   route --> forward: fan-out, PUBACK            the lane's own way, with a route looked up first
               if something stores it, PUBACK waits in the lane's `wire.Receipts`, and so do those behind it
    retained   the same, and the retained store
    QoS 2      identifier known? PUBREC again : publish, PUBREC            PUBREL --> PUBCOMP

A message for which every queue was full, or a queue that refuses publishers, is refused too: with 0x97 in 5.0. A 3.1.1
publisher is not read from until there is room, and is disconnected after `unkept_seconds_max`. The same holds while
nothing can be stored, but that a 3.1.1 publisher waits for as long as that takes.

A message with the User Property `fanlight-delay` is kept, acknowledged, and published when it is due (delay.py).

A message that may not be published is dropped and counted. In 5.0 the acknowledgement says so. In 3.1.1 it cannot, and
the connection is not closed for it [MQTT-3.3.5-2], unless `mqtt_publish_denied` says so: the message is acknowledged
as if it had been published.
"""

from functools import partial

from fanlight_broker.core import errors
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Outcome, Receipt, Refused, Repeated
from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.protocols.mqtt.delay import DELAYED_ID, due_of
from fanlight_broker.protocols.mqtt.error_codes import explaining, reason_of
from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.lane import MqttLane
from fanlight_broker.protocols.mqtt.on_connect import check_text
from fanlight_broker.protocols.mqtt.packets import Acknowledgement, PubAck, PubComp, PubRec, PubRel
from fanlight_broker.protocols.mqtt.peer import Peer
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.publish_denied import PublishDenied
from fanlight_broker.protocols.mqtt.reason_codes import ERROR, ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5


def publish(peer: Peer, now: float) -> bool:
    """Publish the PUBLISH at hand in the lane. False if an outbox holds it back: it is still at hand then."""
    lane, qos, packet_id = peer.lane, peer.lane.message.qos, peer.lane.packet_id
    if not _expected(peer, qos, packet_id):
        return True
    receipt = None if packet_id is None else partial(_confirm, peer, qos, packet_id)
    outcome = _too_large(peer) or _wrong_text(lane) or _accept(peer, qos, packet_id, now, receipt)
    match outcome:
        case Accepted(forwarded=False):
            lane.done()
        case Refused(error=errors.QueueFull()) if qos and peer.version is V3:
            return False  # 3.1.1 has no word for it: it waits, as a message does that no queue has room for
        case Refused(error=errors.RateExceeded()) if (
            qos and peer.version is V3 and lane.outbox.pace is not None
            and (owing := lane.outbox.pace.owing(now)) is not None
        ):
            lane.hold_back(owing.gate)  # nor for this
            return False
        case Refused(error=errors.StoreUnavailable()) if peer.version is V3:
            lane.hold_back(peer.broker.acknowledgements.close_gate())  # 3.1.1 has no word for it
            return False
        case Refused(error=errors.NotPermitted() as denial) if (
            (peer.version is V3 or not qos) and peer.options.publish_denied is PublishDenied.CLOSE
        ):
            try:
                raise denial
            finally:
                del outcome, denial  # else the exception and this frame, which it refers to, would keep each other
        case Refused(error=refusal):
            _refuse(peer, qos, packet_id, refusal)
    return outcome is not HELD


def _accept(peer: Peer, qos: int, packet_id: int | None, now: float, receipt: Receipt | None) -> Outcome:
    lane, due = peer.lane, None
    if lane.has_delay:
        try:
            due = due_of(lane.message, now)
        except ProtocolError as error:
            return Refused(error)
    # With QoS 2 its PUBREL is still to come.
    publication = Publication(
        lane.message, peer.subscriber, identifier=packet_id if qos == 2 else None, due=due, requests=lane.has_response
    )
    return peer.broker.publishing.accept(publication, lane, now, receipt)


def _too_large(peer: Peer) -> Refused | None:
    """Is it larger than a quota allows that was put in force since CONNACK? Raises LimitExceeded in 3.1.1, where no
    CONNACK says so.
    """
    try:
        peer.check_size()
    except errors.LimitExceeded as error:
        if peer.version is V3:
            raise
        return Refused(error)
    return None


def _wrong_text(lane: MqttLane) -> Refused | None:
    """Is the payload said to be UTF-8, and is not? Raises ProtocolError with QoS 0, which has no other answer
    (3.3.2.3.2).
    """
    if not (lane.check_text and lane.is_text):
        return None
    try:
        check_text(lane.message.payload, "PUBLISH: the payload")
    except ProtocolError as error:
        if lane.message.qos == 0:
            raise
        return Refused(error)
    return None


def _expected(peer: Peer, qos: int, packet_id: int | None) -> bool:
    """May the PUBLISH at hand be published? False: it was, and PUBREC is sent again, whether DUP is set or not (4.3.3).

    Raises ProtocolError, LimitExceeded.
    """
    session, limits = peer.session, peer.broker.limits
    if qos == 2 and packet_id is not None and packet_id in session.unreleased:
        peer.lane.done()
        _acknowledge(peer, PubRec(packet_id))
        return False
    if qos == 2 and len(session.unreleased) >= peer.receive_max:
        raise ProtocolError(
            f"PUBLISH: more than {peer.receive_max} messages of QoS 2 that are not released "
            "(unreleased_messages_max, the Receive Maximum of CONNACK)", ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
        )
    if peer.lane.message.retain and not limits.retains and peer.version is V5:
        raise ProtocolError(
            "PUBLISH: RETAIN 1, and this broker retains nothing (retained_messages_max)",
            ReasonCode.RETAIN_NOT_SUPPORTED,
        )  # 3.2.2.3.5; 3.1.1 has no way to announce it: such a message is delivered, and counted as not retained
    if qos == 2 and packet_id is not None:
        session.expect(packet_id)  # before it is published: it must be remembered then
    return True


def _confirm(peer: Peer, qos: int, packet_id: int, outcome: Accepted | Repeated) -> None:
    """Acknowledge a message of QoS 2, a delayed one, or one on which a rule acted, that was accepted, and is stored if
    it is to be. The lane sees to PUBACK of the others. What cancels a delayed message is a User Property.
    """
    properties = NONE
    if isinstance(outcome, Accepted) and outcome.delayed and peer.version is V5:
        properties = Properties(user_properties=((DELAYED_ID, str(outcome.id)),))
    reason = ReasonCode.SUCCESS
    if isinstance(outcome, Accepted) and not outcome.delayed:
        if not outcome.kept:
            reason = ReasonCode.QUOTA_EXCEEDED
        elif not outcome.routed:
            reason = ReasonCode.NO_MATCHING_SUBSCRIBERS
    peer.send((PubAck if qos == 1 else PubRec)(packet_id, reason, properties))


def _refuse(peer: Peer, qos: int, packet_id: int | None, error: errors.FanlightError) -> None:
    """Drop the PUBLISH at hand, and say why if it expects an answer."""
    peer.lane.done()
    peer.note_error(error)
    if qos == 0 or packet_id is None:
        return
    reason, properties = reason_of(error), explaining(error)
    if peer.version is V3:
        reason, properties = ReasonCode.SUCCESS, NONE
    _answer(peer, qos, packet_id, reason, properties)


def _answer(
    peer: Peer, qos: int, packet_id: int, reason: ReasonCode, properties: Properties = NONE
) -> None:
    if qos == 1:
        _acknowledge(peer, PubAck(packet_id, reason, properties))
        return
    if reason < ERROR:
        peer.session.receive(packet_id)  # its PUBREL is still to come
    _acknowledge(peer, PubRec(packet_id, reason, properties))


def _acknowledge(peer: Peer, packet: Acknowledgement) -> None:
    """Behind the acknowledgements of this connection that wait, and when what it acknowledges is stored.

    It may be one that an earlier connection of the session has waited for. An error acknowledges nothing.
    """
    broker, accepted = peer.broker, packet.reason_code < ERROR
    since = None if accepted and peer.session.outlives else broker.position.appended
    broker.acknowledgements.commit(partial(peer.send, packet), peer.lane, recorded=accepted, since=since)


def release(peer: Peer, packet: PubRel) -> None:
    """PUBREL: the client does not send this message again."""
    known = peer.session.release(packet.packet_id)
    _acknowledge(peer, PubComp(packet.packet_id, _found(peer, known)))


def acknowledged(peer: Peer, packet: PubAck, now: float) -> None:
    """PUBACK of a message we sent."""
    _check_kind(peer, packet)
    window = peer.session.window
    end = qos2.refuse if packet.reason_code >= ERROR else qos2.acknowledge
    _found(peer, end(window, packet.packet_id, now))


def received(peer: Peer, packet: PubRec, now: float) -> None:
    """PUBREC of a message we sent: PUBREL, unless the client refused it (4.3.3)."""
    _check_kind(peer, packet)
    window = peer.session.window
    if packet.reason_code >= ERROR:
        _found(peer, qos2.refuse(window, packet.packet_id, now))
        return
    # Not before the journal has what PUBREC says: see MqttLane.acknowledged.
    packet_id, known = packet.packet_id, qos2.receive(window, packet.packet_id)
    answer = partial(peer.send, PubRel(packet_id, _found(peer, known)))
    if window.queue.journal is None:
        answer()
    else:
        peer.broker.acknowledgements.commit(answer, peer.lane, recorded=False)


def completed(peer: Peer, packet: PubComp, now: float) -> None:
    """PUBCOMP of a message we sent."""
    _check_kind(peer, packet)
    _found(peer, qos2.complete(peer.session.window, packet.packet_id, now))


def _check_kind(peer: Peer, packet: PubAck | PubRec | PubComp) -> None:
    """Raises ProtocolError if the message in flight with this identifier waits for another acknowledgement.

    If it were ignored, the identifier would stay in use until the session ends: for the client the exchange is over.
    """
    kind, awaited = packet.type.name, qos2.awaited(peer.session.window, packet.packet_id)
    if awaited is None or awaited == kind:
        return
    if awaited == "PUBCOMP" and kind == "PUBREC" and packet.reason_code < ERROR:
        return  # once more, as the PUBREL may have been lost; a refusal comes too late
    raise ProtocolError(f"{kind} for message {packet.packet_id}, which waits for a {awaited}")


def _found(peer: Peer, known: bool) -> ReasonCode:
    if known:
        return ReasonCode.SUCCESS
    peer.counts.unknown_acknowledgements += 1
    return ReasonCode.SUCCESS if peer.version is V3 else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
