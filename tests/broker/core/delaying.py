"""Publishing with a delay, for tests of the core."""

from typing import Any

from fanlight_broker.core.marks import Mark
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Direct, Outcome
from tests.broker.core.sessions import Peer, World


def delay(
    world: World, publisher: Peer, topic: str, payload: str, seconds: float, qos: int = 0, *, mark: Mark | None = None,
    **options: Any,
) -> Outcome:
    """Publish a message that is due after so many seconds."""
    message = world.message(topic, payload, qos, **options)
    sender = Direct(world.broker.ledger, message, publisher.outbox)
    publication = Publication(message, publisher.client.subscriber, mark, due=world.now + seconds)
    return publisher.home.publishing.accept(publication, sender, world.now)
