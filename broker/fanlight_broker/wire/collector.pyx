# cython: language_level=3
# cython: wraparound=False
"""The collector: joins messages that follow each other to the same subscribers, so that outboxes are touched once a run.

What comes of it is what `fan_out` does for each message, byte for byte and count for count; tests compare the two. So a
run ends before anything could be seen of it: another topic, another frame, a flush, the end of what was read. Whoever has
little room, or anything about them to decide for each message, does not take part in it and is served at once.
"""

from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, realloc

from fanlight_broker.wire.frames cimport MESSAGE
from fanlight_broker.wire.fanout cimport Give, Group, Route, Target, deliver_to, fan_out
from fanlight_broker.wire.ledger cimport CONVERSION, Ledger
from fanlight_broker.wire.message cimport SHARED_BODY, Message, Prepare, Variant, begin, number_into, prepare, raised
from fanlight_broker.wire.outbox cimport Outbox, count_published
from fanlight_broker.wire.run cimport RUN_BYTES, Run

cdef enum:
    IN_A_ROW = 2             # messages on one topic before the next begins a run: looking at all targets must pay
    REFERENCE_BYTES = 512    # a reference costs as much as copying so many
    SHORT = 4                # messages; after a run of less the next is not tried soon
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


cdef Variant steady_of(Variant variant, Message message):
    """What writes the same as a stateful variant from now on, or None."""
    cdef Message own
    try:
        own = message.for_format(variant.format)    # there its topic may be another
        return variant.format.steady(own, variant) if own is not None else None
    except Exception:
        return None    # it is met again when the message is delivered to this target by itself, and counted there


cdef class Collector(Settler):
    """One for all lanes of a loop: only one of them advances at a time."""

    def __cinit__(self):
        self.reference_bytes = REFERENCE_BYTES
        self.room_least = RUN_BYTES

    def __dealloc__(self):
        cdef int i
        for i in range(STRANDS):
            if self.strands[i].run is not NULL:
                Py_DECREF(<object> self.strands[i].run)
        free(self.links)

    cdef Py_ssize_t publish(self, Route route, Ledger ledger, Outbox publisher, Message message, bint more) except -2:
        """Send a message on a route of the cache. Returns to how many subscriptions; -1 if `blocker` holds it back.

        more  other messages of this publisher are there already, and what is joined will be settled behind them
        """
        cdef Py_ssize_t routed
        if self.route is not None:
            if self.route is route:
                routed = self.add(publisher, message)
                if routed >= 0:
                    return routed
            self.settle()
        if self.last is not route:
            self.last = route
            self.in_a_row = 0
        elif more and self.in_a_row >= IN_A_ROW and message.payload_size < SHARED_BODY and not self.off \
                and self.begin(route, ledger, publisher, message):
            routed = self.add(publisher, message)
            if routed >= 0:
                return routed
            self.settle()
        self.in_a_row += 1
        return self.publish_alone(route, ledger, publisher, message)

    cdef Py_ssize_t publish_alone(self, Route route, Ledger ledger, Outbox publisher, Message message) except -2:
        """The same without a run, on any route."""
        if ledger.pausing or ledger.used > ledger.limit:
            if ledger.joining is not None:
                ledger.joining.settle()
            self.blocker = route.blocker(publisher)
            if self.blocker is not None:
                return -1
        return fan_out(route, ledger, publisher, message)

    cdef Outbox held_back_by(self):
        """The outbox that held the last message back; asked once."""
        cdef Outbox blocker = self.blocker
        self.blocker = None
        return blocker

    cdef bint begin(self, Route route, Ledger ledger, Outbox publisher, Message message) except -1:
        """See who could take part in a run of messages like this one. False if nobody could."""
        cdef Target target
        cdef Group group
        cdef Outbox outbox
        cdef Variant variant
        cdef Strand* strand
        cdef Py_ssize_t room
        cdef int i
        if self.adding:
            return False
        self.serial += 2
        # Whoever gets several copies of a message, or answers in between, gets all of them in their order.
        publisher.mark = self.serial + 1
        for group in route.groups:
            for target in group.members:
                target.box().mark = self.serial + 1
        for target in route.targets:
            if target.listens(publisher):
                outbox = target.box()
                outbox.mark = self.serial + (outbox.mark >= self.serial)
        self.n_links = self.n_strands = 0
        clear(&self.aside)
        self.ledger = ledger
        self.qos = message.qos
        for target in route.targets:
            if not target.listens(publisher):
                continue
            outbox = target.box()
            strand = NULL
            room = outbox.limit - outbox.size - outbox.held
            if outbox.mark == self.serial and room >= self.room_least and not outbox.pausing and target.joins(message.qos):
                variant = target.variant
                if variant.stateful:
                    variant = steady_of(variant, message)
                if variant is not None:
                    strand = self.strand_for(variant, target.number)
            if strand is NULL:
                self.link(target, &self.aside)
                continue
            self.link(target, &strand.joined)
            strand.room = min(strand.room, room)
            strand.frame_max = min(strand.frame_max, outbox.frame_max)
        if self.n_strands == 0:
            self.in_a_row = -WAIT
            return False
        for i in range(self.n_strands):
            if self.strands[i].run is NULL:
                run = Run()
                Py_INCREF(run)
                self.strands[i].run = <void*> run
        self.route = route
        ledger.joining = self
        return True

    cdef Strand* strand_for(self, Variant variant, uint32_t number) except? NULL:
        """The one of these bytes; NULL if there are too many already."""
        cdef Strand* strand
        cdef int i
        for i in range(self.n_strands):
            strand = &self.strands[i]
            if strand.variant is <void*> variant and (not strand.numbered or strand.number == number):
                return strand
        if self.n_strands == STRANDS:
            return NULL
        strand = &self.strands[self.n_strands]
        self.n_strands += 1
        strand.variant = <void*> variant
        strand.numbered = variant.hole_size == 4
        strand.number = number
        clear(&strand.joined)
        strand.room = RUN_BYTES
        strand.frame_max = RUN_BYTES
        return strand

    cdef int link(self, Target target, Chain* chain) except -1:
        cdef Py_ssize_t capacity
        cdef void* links
        if self.n_links == self.links_capacity:
            capacity = max(2 * self.links_capacity, <Py_ssize_t> 64)
            links = realloc(self.links, capacity * sizeof(Link))
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

    cdef Py_ssize_t add(self, Outbox publisher, Message message) except -2:
        """Join one more message. Returns to how many subscriptions it goes; -1, and nothing is done, if it must not be."""
        cdef Ledger ledger = self.ledger
        cdef Route route = self.route
        cdef Strand* strand
        cdef Variant variant
        cdef Run run
        cdef int written
        cdef Py_ssize_t size, i, octets = 0, joined = 0, others = self.aside.length + PyList_GET_SIZE(route.groups)
        if message.qos != self.qos or (others and ledger.pausing and self.held_back(publisher)):
            return -1
        begin(message)
        for i in range(self.n_strands):
            strand = &self.strands[i]
            variant = <Variant> strand.variant
            run = <Run> strand.run
            written = (<Prepare> prepare)(variant, message)
            if written < 0:
                forget_raised()    # `fan_out` meets it again, at each target
            if written <= 0 or variant.shared is not NULL \
                    or variant.hole_size == 2 or variant.firm or (variant.hole_size == 4 and not strand.numbered):
                return -1
            size = variant.head_size + variant.body_size
            if size > strand.frame_max or run.size + size > strand.room or not run.takes(size):
                return -1
            octets += strand.joined.length * size
            joined += strand.joined.length
        # So far from the common limit that the order, in which it takes it from the others, makes no difference.
        if ledger.used + octets + others * (2 * message.payload_size + FAR) > ledger.limit:
            return -1
        for i in range(self.n_strands):
            strand = &self.strands[i]
            variant = <Variant> strand.variant
            if variant.hole_size == 4:
                number_into(variant.head + variant.hole, strand.number)
            (<Run> strand.run).add(variant)
        ledger.used += octets
        ledger.payload_out += joined * message.payload_size
        ledger.messages_in += 1
        count_published(ledger, publisher)
        ledger.payload_in += message.payload_size
        route.hits += 1
        if route.tap is not None:
            route.tap.take(ledger, publisher, message)
        if others:
            joined += self.deliver_aside(publisher, message)
        ledger.copies += self.aside.length
        if message.laden:
            if message.translations is not None:
                ledger.copies += CONVERSION
            message.finish()
        ledger.unkept = False    # those that take part in the run have it
        ledger.count_recipients(joined, 1)
        return joined

    cdef Py_ssize_t deliver_aside(self, Outbox publisher, Message message) except -1:
        """To those that take no part. The run may be settled by that: somebody is flushed."""
        cdef Py_ssize_t at = self.aside.first, routed = 0
        cdef Target target
        cdef Group group
        cdef Route route = self.route
        self.adding = True
        try:
            while at >= 0:
                target = <Target> self.links[at].target
                at = self.links[at].following
                if target.listens(publisher):
                    if (<Give> deliver_to)(target, message) < 0:
                        target.failed()
                    else:
                        routed += 1
            for group in route.groups:
                routed += group.give(publisher, message)
        finally:
            self.adding = False
        return routed

    cdef bint held_back(self, Outbox publisher) except -1:
        """Does one of those that take no part hold the publisher back? Those that do have room."""
        cdef Py_ssize_t at = self.aside.first
        cdef Target target
        cdef Group group
        while at >= 0:
            target = <Target> self.links[at].target
            at = self.links[at].following
            if target.listens(publisher) and target.box().holds_back(publisher):
                return True
        for group in self.route.groups:
            if group.blocker(publisher) is not None:
                return True
        return False

    cdef int settle(self) except -1:
        return self.settle_run() if self.route is not None else 0

    cdef int settle_run(self) except -1:
        """Put what was joined into the outboxes."""
        cdef Strand* strand
        cdef Run run
        cdef Target target = None
        cdef Py_ssize_t at, i, most = 0
        self.ledger.joining = None
        self.ledger.copies += self.n_links
        self.route = None
        for i in range(self.n_strands):
            strand = &self.strands[i]
            run = <Run> strand.run
            if run.messages == 0:
                continue
            most = max(most, run.messages)
            if run.size < self.reference_bytes:
                self.ledger.used -= strand.joined.length * run.size
            else:
                Py_DECREF(run)
                strand.run = NULL
                run.trim()
                self.runs += 1
                self.joined += run.messages
            at = strand.joined.first
            while at >= 0:
                try:
                    while at >= 0:
                        target = <Target> self.links[at].target
                        at = self.links[at].following
                        self.hand_over(run, target)
                except Exception as error:
                    if run.size >= self.reference_bytes:
                        self.ledger.used -= run.size
                    target.fault(error)
            if strand.run is not NULL:
                run.size = run.messages = 0
        if most < SHORT:
            self.in_a_row = -WAIT
        return 0

    cdef int hand_over(self, Run run, Target target) except -1:
        """Put a run into one outbox: by reference, or copied if it is small."""
        cdef Outbox outbox = target.box()
        cdef Py_ssize_t start = 0, j
        if run.size >= self.reference_bytes:
            outbox.put_run(run, target.number)
        else:
            for j in range(run.messages):
                outbox.put(run.data + start, run.ends[j] - start, NULL, 0, target.number, MESSAGE)
                start = run.ends[j]
        target.delivered_more(run.messages)
        return 0
