"""What the client counted. Nothing is lost without one of these going up."""

from dataclasses import dataclass


@dataclass(slots=True)
class Stats:
    """Counters of one client, in messages unless said otherwise; but for `held` they only grow."""

    published: int = 0
    """Accepted for sending by publish, publish_many and request."""
    delivered: int = 0
    """Received, over all subscriptions and replies."""
    dropped: int = 0
    """Received and dropped here, over all subscriptions, by drop_newest, drop_oldest or error."""
    unclaimed: int = 0
    """Received for a subscription that had just ended here, or a reply that nobody awaits any more."""
    unsent_kept: int = 0
    """Unsent when a connection was lost, and sent on the next one."""
    unsent_lost: int = 0
    """Still unsent when the client closed or gave up."""
    unconfirmed: int = 0
    """Fire-and-forget, handed to a connection that was lost before anything showed that the broker had read
    them: they may or may not have arrived. Nothing is sent twice on that suspicion."""
    reconnects: int = 0
    """Connections made after the first, in connections."""
    errors: int = 0
    """ERROR frames that answered no request, in frames: a refused fire-and-forget publish, for one."""
    held: bool = False
    """The broker reads nothing more from this client at present: a subscriber to what it publishes is behind."""
    held_times: int = 0
    """How often that was so, in times."""
    held_seconds: float = 0.0
    """And for how long, in seconds, the present time not included."""


@dataclass(slots=True)
class SubscriptionStats:
    """Counters of one subscription, in messages."""

    delivered: int = 0
    """Received from the broker."""
    taken: int = 0
    """Handed to the program."""
    dropped: int = 0
    """Dropped here, by the overflow policy."""
    dropped_by_broker: int = 0
    """Dropped by the broker under its slow policy or for want of credit; known when the subscription ends."""
