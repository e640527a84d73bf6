# cython: language_level=3
# cython: wraparound=False
"""The batcher joins messages that follow each other to the same subscribers: outboxes are touched once a batch.

The result equals that of `fan_out` for each message, byte for byte and count for count; tests compare the two. So a
batch ends before its effect is visible: at other subscribers, another frame, a flush, the end of what was read. Targets
with little room, or with a decision to make for each message, take no part in it and are served at once.

That subscribers are the same is seen by their list, which routes share (finder.pxd): topics may differ.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF

from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.frames cimport MESSAGE
from fanlight_broker.wire.fanout cimport Give, deliver_to, fan_out
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.ledger cimport CONVERSION, Ledger
from fanlight_broker.wire.message cimport SHARED_BODY, Message, Variant, uint32_into
from fanlight_broker.wire.outbox cimport Outbox, count_published
from fanlight_broker.wire.publication cimport (
    Prepare, FanoutState, begin, converted, finish, for_format, prepare, raised,
)
from fanlight_broker.wire.batch cimport BATCH_BYTES, Batch

cdef enum:
    IN_A_ROW = 2             # messages to the same before the next begins a batch: it costs a look at all targets
    REFERENCE_BYTES = 512    # a reference costs as much as copying this many
    SHORT = 4                # messages; after a shorter batch the next is not tried soon
    WAIT = 32                # messages
    FAR = 4096               # bytes: more than a message has beside its payload


cdef inline void clear(Chain* chain) noexcept:
    chain.length = 0
    chain.first = chain.last = -1


cdef int forget_raised() except -1:
    """Drop the exception that an unchecked call has left."""
    try:
        raised()
    except Exception:
        pass
    return 0


cdef Variant steady_of(Variant variant, FanoutState* publication):
    """What writes the same as a stateful variant from now on, or None."""
    cdef Message own
    try:
        own = for_format(publication, variant.format)    # there its topic may be another
        return variant.format.steady(own, variant) if own is not None else None
    except Exception:
        return None    # raised again, and counted, when the message is delivered to this target individually


cdef class Batcher(PendingBatches):
    """One for all lanes of a loop: only one of them advances at a time."""

    def __cinit__(self):
        self.reference_bytes = REFERENCE_BYTES
        self.room_least = BATCH_BYTES

    def __dealloc__(self):
        cdef int i
        for i in range(OPEN_BATCHES):
            if self.open[i].batch is not NULL:
                Py_DECREF(<object> self.open[i].batch)
        deallocate(self.links)

    cdef Py_ssize_t publish(self, Route route, Ledger ledger, Outbox publisher, Message message, bint more) except -2:
        """Send a message on a route of the cache. Returns the count of its subscriptions; -1: `blocker` holds it back.

        more  other messages of this publisher are there already, and what is joined will be flushed behind them
        """
        cdef Py_ssize_t routed
        if self.targets is not None:
            if self.targets is route.targets and (self.route is route or self.takes(route)):
                routed = self.add(route, publisher, message)
                if routed >= 0:
                    return routed
            self.flush_batch()
        if self.last is not route and PyBytes_GET_SIZE(route.key):
            self.last = route
        if self.last_targets is not route.targets:
            self.last_targets = route.targets
            self.in_a_row = 0
        elif more and self.in_a_row >= IN_A_ROW and message.payload_size < SHARED_BODY and not self.off \
                and self.start_batches(route, ledger, publisher, message):
            routed = self.add(route, publisher, message)
            if routed >= 0:
                return routed
            self.flush_batch()
        self.in_a_row += 1
        return self.publish_alone(route, ledger, publisher, message)

    cdef Py_ssize_t publish_alone(self, Route route, Ledger ledger, Outbox publisher, Message message) except -2:
        """The same without a batch, on any route."""
        if ledger.pausing or ledger.used > ledger.limit:
            if ledger.pending is not None:
                ledger.pending.flush_batch()
            self.blocker = route.blocker(publisher)
            if self.blocker is not None:
                return -1
        return fan_out(route, ledger, publisher, message)

    cdef bint takes(self, Route route) noexcept:
        """Do messages on another route with the same targets join the open batch?"""
        return not self.of_one_topic and route.tap is None and PyList_GET_SIZE(route.groups) == 0

    cdef int forget(self) except -1:
        """Subscriptions have changed: what is known of the message before is not so any more."""
        self.last = None
        self.last_targets = None
        return 0

    cdef Outbox held_back_by(self):
        """The outbox that held the last message back; read once."""
        cdef Outbox blocker = self.blocker
        self.blocker = None
        return blocker

    cdef bint start_batches(self, Route route, Ledger ledger, Outbox publisher, Message message) except -1:
        """Find the targets that can take part in a batch of messages like this one. False if there are none."""
        cdef Target target
        cdef Members group
        cdef Outbox outbox
        cdef FanoutState publication
        if self.adding:
            return False
        self.serial += 2
        # An outbox that gets several copies of a message, or answers in between, must get all of them in order.
        publisher.stamp = self.serial + 1
        for group in route.groups:
            group.stamp(self.serial + 1)
        for target in route.targets:
            if target.listens(publisher):
                outbox = target.box()
                outbox.stamp = self.serial + (outbox.stamp >= self.serial)
        self.n_links = self.n_open = 0
        self.of_one_topic = route.tap is not None or PyList_GET_SIZE(route.groups) != 0
        clear(&self.individual)
        self.ledger = ledger
        self.qos = message.qos
        begin(&publication, message)
        try:
            self.sort_targets(route, publisher, &publication)
            self.make_batches()
        except MemoryError:
            self.n_open = 0    # a batch saves time only: without the memory for it, each message is sent individually
        finally:
            finish(&publication)
        if self.n_open == 0:
            self.in_a_row = -WAIT
            return False
        self.route = route if PyBytes_GET_SIZE(route.key) else None
        self.targets = route.targets
        ledger.pending = self
        return True

    cdef int make_batches(self) except -1:
        """An empty batch for each that is open."""
        cdef int i
        for i in range(self.n_open):
            if self.open[i].batch is NULL:
                batch = Batch()
                Py_INCREF(batch)
                self.open[i].batch = <void*> batch
        return 0

    cdef int sort_targets(self, Route route, Outbox publisher, FanoutState* publication) except -1:
        """Link each target to an open batch, or to those that are served individually."""
        cdef Target target
        cdef Outbox outbox
        cdef Variant variant
        cdef OpenBatch* opened
        cdef Py_ssize_t room
        for target in route.targets:
            if not target.listens(publisher):
                continue
            outbox = target.box()
            opened = NULL
            room = outbox.limit - outbox.size - outbox.awaiting_credit
            if outbox.stamp == self.serial and room >= self.room_least and not outbox.pausing \
                    and target.joins(self.qos):
                variant = target.variant
                if variant.stateful:
                    self.of_one_topic = True
                    variant = steady_of(variant, publication)
                if variant is not None:
                    opened = self.open_batch_for(variant, target.number)
            if opened is NULL:
                self.link(target, &self.individual)
                continue
            self.link(target, &opened.joined)
            opened.room = min(opened.room, room)
            opened.frame_max = min(opened.frame_max, outbox.frame_max)
        return 0

    cdef OpenBatch* open_batch_for(self, Variant variant, uint32_t number) except? NULL:
        """The one of these bytes; NULL if there are too many already."""
        cdef OpenBatch* opened
        cdef int i
        for i in range(self.n_open):
            opened = &self.open[i]
            if opened.variant is <void*> variant and (not opened.numbered or opened.number == number):
                return opened
        if self.n_open == OPEN_BATCHES:
            return NULL
        opened = &self.open[self.n_open]
        self.n_open += 1
        opened.variant = <void*> variant
        opened.numbered = variant.hole_size == 4
        opened.number = number
        clear(&opened.joined)
        opened.room = BATCH_BYTES
        opened.frame_max = BATCH_BYTES
        return opened

    cdef int link(self, Target target, Chain* chain) except -1:
        cdef Py_ssize_t capacity
        cdef void* links
        if self.n_links == self.links_capacity:
            capacity = max(2 * self.links_capacity, <Py_ssize_t> 64)
            links = reallocate(self.links, capacity * sizeof(Link))
            if links is NULL:
                raise MemoryError()
            self.links = <Link*> links
            self.links_capacity = capacity
        self.links[self.n_links].target = <void*> target
        self.links[self.n_links].following = -1
        if chain.length:
            self.links[chain.last].following = self.n_links
        else:
            chain.first = self.n_links
        chain.last = self.n_links
        chain.length += 1
        self.n_links += 1
        return 0

    cdef Py_ssize_t add(self, Route route, Outbox publisher, Message message) except -2:
        """Join one more message. Returns the count of its subscriptions; -1, with nothing done, if it cannot be."""
        cdef FanoutState publication
        cdef Ledger ledger = self.ledger
        cdef OpenBatch* opened
        cdef Variant variant
        cdef int written
        cdef bint fits = True
        cdef Py_ssize_t size, i, octets = 0, joined = 0, others = self.individual.length + PyList_GET_SIZE(route.groups)
        if message.qos != self.qos or (others and ledger.pausing and self.held_back(route, publisher)):
            return -1
        begin(&publication, message)
        for i in range(self.n_open):
            opened = &self.open[i]
            variant = <Variant> opened.variant
            written = (<Prepare> prepare)(&publication, variant)
            if written < 0:
                forget_raised()    # `fan_out` meets it again, at each target
            size = variant.head_size + variant.body_size
            if written <= 0 or variant.shared is not NULL \
                    or variant.hole_size == 2 or variant.firm or (variant.hole_size == 4 and not opened.numbered) \
                    or size > opened.frame_max or (<Batch> opened.batch).size + size > opened.room \
                    or not (<Batch> opened.batch).takes(size):
                fits = False
                break
            octets += opened.joined.length * size
            joined += opened.joined.length
        # So far from the common limit that the order, in which it takes it from the others, makes no difference.
        if not fits or ledger.used + octets + others * (2 * message.payload_size + FAR) > ledger.limit:
            finish(&publication)
            return -1
        for i in range(self.n_open):
            opened = &self.open[i]
            if (<Variant> opened.variant).hole_size == 4:
                uint32_into((<Variant> opened.variant).head + (<Variant> opened.variant).hole, opened.number)
            (<Batch> opened.batch).add(<Variant> opened.variant)
        ledger.used += octets
        ledger.payload_out += joined * message.payload_size
        ledger.messages_in += 1
        count_published(ledger, publisher, message.topic_size + message.payload_size)
        ledger.payload_in += message.payload_size
        route.hits += 1
        if others or route.tap is not None:
            joined += self.deliver_individually(route, publisher, &publication)
        ledger.copies += self.individual.length
        if converted(&publication):
            ledger.copies += CONVERSION
        finish(&publication)
        ledger.unkept = False    # those that take part in the batch have it
        ledger.count_recipients(joined, 1)
        return joined

    cdef Py_ssize_t deliver_individually(self, Route route, Outbox publisher, FanoutState* publication) except -1:
        """Deliver to the archive and to those that take no part. That may flush an outbox, and the batch before it.

        If it raises, the publication is finished: a `try` in `add` would cost 4 % of a message.
        """
        cdef Py_ssize_t at = self.individual.first, routed = 0
        cdef Target target
        cdef Members group
        cdef bint done = False
        self.adding = True
        try:
            if route.tap is not None:
                route.tap.record(self.ledger, publisher, publication)
            while at >= 0:
                target = <Target> self.links[at].target
                at = self.links[at].following
                if target.listens(publisher):
                    if (<Give> deliver_to)(target, publication) < 0:
                        target.failed()
                    else:
                        routed += 1
            for group in route.groups:
                routed += group.give(publisher, publication)
            done = True
        finally:
            self.adding = False
            if not done:
                finish(publication)
        return routed

    cdef bint held_back(self, Route route, Outbox publisher) except -1:
        """Does one of those that take no part hold the publisher back? Those that do have room."""
        cdef Py_ssize_t at = self.individual.first
        cdef Target target
        cdef Members group
        while at >= 0:
            target = <Target> self.links[at].target
            at = self.links[at].following
            if target.listens(publisher) and target.box().holds_back(publisher):
                return True
        for group in route.groups:
            if group.blocker(publisher) is not None:
                return True
        return False

    cdef int flush_batch(self) except -1:
        return self.flush_open_batches() if self.targets is not None else 0

    cdef int flush_open_batches(self) except -1:
        """Put what was joined into the outboxes."""
        cdef OpenBatch* opened
        cdef Batch batch
        cdef Target target = None
        cdef Py_ssize_t at, i, most = 0
        cdef list _targets = self.targets    # has what the links borrow
        self.ledger.pending = None
        self.ledger.copies += self.n_links
        self.route = None
        self.targets = None
        for i in range(self.n_open):
            opened = &self.open[i]
            batch = <Batch> opened.batch
            if batch.messages == 0:
                continue
            most = max(most, batch.messages)
            if batch.size < self.reference_bytes:
                self.ledger.used -= opened.joined.length * batch.size
            else:
                Py_DECREF(batch)
                opened.batch = NULL
                batch.trim()
                self.batches += 1
                self.joined += batch.messages
            at = opened.joined.first
            while at >= 0:
                try:
                    while at >= 0:
                        target = <Target> self.links[at].target
                        at = self.links[at].following
                        self.hand_over(batch, target)
                except Exception as error:
                    if batch.size >= self.reference_bytes:
                        self.ledger.used -= batch.size
                    target.fault(error)
            if opened.batch is not NULL:
                batch.size = batch.messages = 0
        if most < SHORT:
            self.in_a_row = -WAIT
        return 0

    cdef int hand_over(self, Batch batch, Target target) except -1:
        """Put a batch into one outbox: by reference, or copied if it is small."""
        cdef Outbox outbox = target.box()
        cdef Py_ssize_t start = 0, j
        if batch.size >= self.reference_bytes:
            outbox.put_batch(batch, target.number)
        else:
            for j in range(batch.messages):
                outbox.put(batch.data + start, batch.ends[j] - start, NULL, 0, target.number, MESSAGE)
                start = batch.ends[j]
        target.delivered_more(batch.messages)
        return 0
