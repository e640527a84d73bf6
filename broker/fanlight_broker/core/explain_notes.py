"""Why a client may not have a message that one of its subscriptions gets: it is away, it does not acknowledge, it is
slow, it has no credit, or another one of its group gets it.
"""

from collections.abc import Iterator

from fanlight_broker.core.slow_consumers import dropped_of, slowness
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription, group_name_of


def notes_of(owner: Subscriber) -> Iterator[str]:
    """Of a client, or of a session whose client is away."""
    session, client = owner.session, owner.client
    if session is not None:
        waiting, window = len(session.window.queue), session.window
        if not session.connected:
            yield f"it is not connected; its session is kept, waiting for it: {counted(waiting + window.in_flight)}"
        elif window.in_flight >= window.inflight_max:
            yield (
                f"it has not acknowledged {counted(window.in_flight)}, and gets no others with QoS 1 and 2 before; "
                f"waiting in its queue: {counted(waiting)}"
            )
        if dropped := window.queue.dropped:
            yield f"dropped because the queue of its session was full: {counted(dropped)}"
        if expired := window.queue.expired:
            yield f"expired in the queue of its session: {counted(expired)}"
    if client is None:
        return
    if client.outbox.dropped:
        policy = client.outbox.policy
        yield f"dropped because it is slow (slow policy {policy}): {counted(dropped_of(client))}"
    elif (reason := slowness(client)) is not None:
        yield f"it is slow: {reason}"


def notes_of_reached(subscription: Subscription) -> Iterator[str]:
    """Of one that the topic reaches."""
    filter = subscription.filter.decode("utf-8", "backslashreplace")
    if (group := group_name_of(subscription)) is not None:
        yield f"{filter} is in the group {group}: one of its members gets each message, which may be another one"
    if subscription.no_echo:
        yield f"{filter} does not get what this client publishes itself"
    if subscription.waiting_messages:
        waits = counted(subscription.waiting_messages)
        yield f"{filter} has no credit left, which its client has to grant; waiting: {waits}"


def counted(messages: int) -> str:
    return f"{messages:,} message{'' if messages == 1 else 's'}"
