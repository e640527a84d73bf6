"""The options of a named queue in force: as its compiled inside has them, within the broker's limits."""

from math import inf
from typing import Final

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.work_queue import Overflow, QueueOptions, WorkQueue

READ_LATER: Final = 4_096  # messages by which a queue may be above its bounds while its oldest are read


def put_in_force(queue: WorkQueue, limits: Limits) -> None:
    """Of a new queue, or of one that lives: then the priorities stay, and what is too much is there until `trim`."""
    inside, options = queue.inside, queue.options
    inside.queue.messages_max = min(
        options.messages_max or limits.work_queue_messages_max, limits.work_queue_messages_max
    )
    if options.stream is not None and inside.recorder is None:
        inside.queue.messages_max = 0  # without an archive it takes nothing
    inside.queue.bytes_max = min(options.bytes_max or limits.work_queue_bytes_max, limits.work_queue_bytes_max)
    inside.queue.drop_oldest = options.overflow in (Overflow.DROP_OLDEST, Overflow.DEAD_LETTER)
    inside.queue.ttl = options.message_seconds if options.message_seconds is not None else inf
    inside.deliveries_max = options.deliveries_max or 0
    inside.single = options.single_active
    if options.priorities is not None and not inside.queue.priorities:
        inside.queue.prioritize(options.priorities)
    inside.queue.buries_newest = options.overflow is Overflow.DEAD_LETTER_NEWEST
    inside.queue.in_order, inside.queue.by_bodies = options.in_order, options.by_bodies
    inside.refuse_publishers(options.overflow in (None, Overflow.REFUSE_PUBLISHER))
    inside.buries = options.dead_letter is not None
    buries_oldest = inside.buries and inside.queue.drop_oldest
    inside.queue.reads_dropped = len(inside.queue) + inside.queue.messages_max + READ_LATER if buries_oldest else 0


def adjust(queue: WorkQueue, options: QueueOptions, limits: Limits, now: float) -> None:
    """Other options are in force. A queue that nobody uses has its whole time without a consumer again."""
    if options.unused_seconds != queue.options.unused_seconds and queue.unused_since is not None:
        queue.unused_since = now
    queue.options = options
    put_in_force(queue, limits)


def swept(queue: WorkQueue, now: float, most: int) -> bool:
    """Drop what has expired, and what is too much: about so many messages. Returns whether there may be more."""
    unfinished = queue.inside.sweep(now, most)
    unfinished = queue.inside.queue.trim(most) or unfinished
    if queue.filling is not None:
        queue.filling.drained()  # what has left made room, too
    return unfinished
