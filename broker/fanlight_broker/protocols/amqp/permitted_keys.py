"""May a publisher publish with all the keys of a message, and on all the topics that exchanges have found for it?

`Publishing.accept` asks about one topic, the message's: the first that it reaches, or that of its exchange and routing
key. Here are the others: the keys of CC and BCC, the exchange of a message that it has led to topics, and further
topics. It is asked for what a client publishes, and for what a queue has discarded.

A delayed message is routed when it is due, and its publisher may be gone then. What is bound meanwhile leads it to no
topic on which its publisher was not asked.
"""

from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES, check_publisher
from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations
from fanlight_broker.protocols.amqp.fields import SYNTAX, TOPIC_EXCHANGE, exchange_topic
from fanlight_broker.wire.message import Message


def check_more_keys(
    enforcement: Enforcement, publisher: Subscriber, exchange: str, keys: tuple[str, ...], reached: Destinations,
    message: Message,
) -> None:
    """keys: the routing key, then those of CC and BCC. Raises NotPermitted, InvalidTopic."""
    wanted = [topic.encode() for topic in reached.topics[1:]]
    if exchange != TOPIC_EXCHANGE:  # of amq.topic the keys are the topics
        wanted += [exchange_topic(exchange, key) for key in keys[0 if reached.topics else 1 :]]
    for topic in wanted:
        check_publisher(topic)
        enforcement.check(publisher, Action.PUBLISH, topic, SYNTAXES[SYNTAX], message)


def permitted_when_due(enforcement: Enforcement, reached: Destinations, message: Message) -> Destinations:
    """Without the topics on which the publisher of a delayed message was not asked when it was accepted."""
    if not reached.topics:
        return reached
    topics = tuple(each for each in reached.topics if each.encode() == message.topic or (
        not enforcement.has_restricted and _is_open(each)
    ))  # fmt: skip
    return reached if topics == reached.topics else Destinations(reached.queues, topics)


def _is_open(topic: str) -> bool:
    try:
        check_publisher(topic.encode())
    except NotPermitted:
        return False
    return True
