# cython: language_level=3
# cython: wraparound=False
"""Outbox: the unsent frames of one connection, bounded, with a policy for when it is full.

Frames are appended whole and leave in order. Messages may be dropped as the slow policy says (always whole, never
once they have begun to be sent); answers and errors never are: a client that asks faster than it reads is not read from
any further (`control_size`, enforced by the connection). The outbox does not send: net.flush does, once a turn.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from fanlight_broker.wire.frames cimport DEAD, FIRM, MESSAGE, BATCH, SHARED, Frame, Frames
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.batch cimport Batch

cdef enum:
    KEPT_BYTES = 512 * 1024      # an empty outbox keeps a buffer up to this size until it has been idle for a while
    COPIES_LET_IN = 16           # of one message to one connection under policy pause, however large they are
    LET_IN = 32 * 1024           # bytes past the common limit, of messages whose publisher was not held in time

cdef Py_ssize_t ANY_SIZE = <Py_ssize_t> ((<size_t> -1) >> 1)

BURST, PAUSES = FROM_BURSTS, FROM_PAUSES

POLICIES = ("drop_newest", "drop_oldest", "disconnect", "pause")


cdef class Sink:
    cpdef flush_now(self):
        """Send what the socket takes, in the middle of a turn. Raises nothing: a fault is for the turn's end."""
        raise NotImplementedError("a sink that sends nothing")


cdef class Owner:
    """Whom an outbox or a window belongs to. Abstract: a subclass has an attribute `subscriber`."""


cdef class Outbox:
    """The unsent frames of one connection.

    limit    bytes of unsent frames beyond which messages meet the policy
    policy   one of POLICIES
    """

    def __cinit__(self, Ledger ledger not None, Py_ssize_t limit, str policy, Owner owner=None):
        self.ledger = ledger
        self.meter = ledger.meter
        self.limit = limit
        self.frame_max = ANY_SIZE
        self.policy = policy
        self.owner = owner
        self.evicted = {}

    @property
    def policy(self):
        """The slow policy's name; setting it takes effect with the next message. Raises ValueError."""
        return POLICIES[self.policy_code]

    @policy.setter
    def policy(self, str policy not None):
        if policy not in POLICIES:
            raise ValueError(f"slow policy {policy!r}; it is one of {', '.join(POLICIES)}")
        self.policy_code = <Policy> <int> POLICIES.index(policy)
        self.small = SMALL_OUTBOX - LET_IN if self.policy_code == PAUSE else SMALL_OUTBOX
        self.patient = self.policy_code == PAUSE    # the core may allow it to others, too

    @property
    def half_full(self):
        """Is more than half of its limit taken?"""
        return self.over_half(0)

    # -- putting in -------------------------------------------------------------------------------------------------

    def write(self, bytes frame not None):
        """Append a control frame: an answer or an error. Never dropped, whatever the policy."""
        if self.closed:
            return
        self.put(PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame), NULL, 0, 0, 0)
        self.control_size += PyBytes_GET_SIZE(frame)

    cdef bint holds_back(self, Outbox publisher) noexcept:
        """Must a publisher wait before it sends to this outbox?"""
        if not self.patient or self.closed:
            return False
        if publisher is not None and publisher.exempt & (FROM_PAUSES if self.policy_code == PAUSE else FROM_BURSTS):
            return False
        if self.pausing:
            return True
        if self.size == 0 or self.admits(0):
            # Nothing unsent: what fills it waits for credit, and no draining would ever let the publisher go on.
            return False
        self.begin_pause()
        return True

    cdef void begin_pause(self) noexcept:
        if not self.pausing:
            self.pausing = True
            self.let_in = 0
            self.ledger.pausing += 1
            self.resume_at = min(self.limit, self.size) // 2

    cdef void choke(self) noexcept:
        """Its own client has too many answers unread: it must wait until they are read."""
        self.choked = True
        self.begin_pause()

    cdef bint has_room(self, Py_ssize_t size) except -1:
        """`admits`, after a flush if that helps."""
        if self.admits(size):
            return True
        if self.stuck or self.sink is None:
            return False
        if self.ledger.pending is not None:
            self.ledger.pending.flush_batch()    # before anything is sent, and before callbacks of that run
        # Much can be read in one turn, and a quick consumer is not slow because its flush comes at the end of it.
        self.sink.flush_now()
        return not self.closed and self.admits(size)

    cdef bint make_room(self, Py_ssize_t size) except -1:
        """A message does not fit: apply the policy. True if it may be appended now."""
        if self.has_room(size):
            return True
        if self.closed:    # the flush has found that its peer has gone
            self.dropped += 1
            self.ledger.dropped_disconnect += 1
            return False
        if self.fits_without_dead(size):
            return True
        self.overflows += 1
        self.notice()
        if self.patient and (self.policy_code == PAUSE or not self.pausing):
            # One message over the limit: the next publisher finds the outbox holding back (`holds_back`). A publisher
            # that is not held back any more meets the policy. Under pause more may follow: the copies of one message
            # for all subscriptions of a connection, and from publishers that are not held back any more. That is
            # bounded, see `lets_in`.
            self.begin_pause()
            if self.size + self.awaiting_credit + size <= max(2 * self.limit, COPIES_LET_IN * size) \
                    and self.lets_in(size):
                return True
        if self.policy_code == DROP_OLDEST and self.control_size + self.awaiting_credit + size <= self.limit:
            while self.scanned < self.count:
                if self.evict_next() and self.fits_without_dead(size):
                    return True
        if self.policy_code == DISCONNECT:
            self.doom()
            self.ledger.dropped_disconnect += 1
        else:
            self.ledger.dropped_newest += 1
        self.dropped += 1
        return False

    cdef bint lets_in(self, Py_ssize_t size) noexcept:
        """Does the common limit allow a message past this outbox's own? Under pause little is let in past that, too."""
        if self.ledger.used + size <= self.ledger.limit or self.size + self.awaiting_credit + size <= self.small:
            return True
        if self.policy_code != PAUSE or self.let_in + size > LET_IN:
            return False
        self.let_in += size
        return True

    cdef bint fits_without_dead(self, Py_ssize_t size) noexcept:
        """`admits`, what is dead not counted: it is taken out before it is much."""
        cdef Py_ssize_t after = self.size + self.awaiting_credit + size
        return after <= self.limit and (self.ledger.used - self.dead + size <= self.ledger.limit or after <= self.small)

    cdef bint evict_next(self) except -1:
        """Drop the oldest message that may be dropped, of a batch its first; False if the frame at hand is to be kept.

        Where frames that are kept stand before it, its place is dead until they move up. A shared body is freed.
        """
        cdef Frame* frame = &self.frames[(self.first + self.scanned) & (self.frames_capacity - 1)]
        cdef Py_ssize_t size = frame.inline_size
        cdef Batch batch
        cdef bint over = True
        if self.scanned < self.pinned or frame.flags & (MESSAGE | DEAD | FIRM) != MESSAGE:
            self.pass_over()
            return False
        if frame.flags & BATCH:
            batch = <Batch> self.bodies[self.passed]
            size = batch.upto(frame.done, 1, True)
            frame.done += <uint32_t> size
            over = frame.done == batch.size
        elif frame.flags & SHARED:
            size += PyBytes_GET_SIZE(self.bodies[self.passed])
        self.size -= size
        self.ledger.used -= size
        self.messages -= 1
        self.dropped += 1
        self.ledger.dropped_oldest += 1
        self.evicted[frame.number] = self.evicted.get(frame.number, 0) + 1
        if not over:
            return True
        if frame.flags & (SHARED | BATCH):
            del self.bodies[self.passed]
            frame.flags &= ~<uint32_t> (SHARED | BATCH)
        if self.scanned == 0:
            self.drop_first()
            return True
        frame.flags |= DEAD
        self.scanned += 1
        size = max(<Py_ssize_t> frame.inline_size, <Py_ssize_t> sizeof(Frame))
        self.dead += size
        self.ledger.used += size
        if self.dead > self.passed_bytes:
            self.squeeze()
        return True

    cdef int squeeze(self) except -1:
        self.ledger.used -= self.dead
        return Frames.squeeze(self)

    cdef int put(self, const char* head, Py_ssize_t head_size, const char* body, Py_ssize_t body_size,
                 uint32_t number, uint32_t flags) except -1:
        """Append one frame, given in two pieces, by copying it."""
        cdef Py_ssize_t size = head_size + body_size
        cdef char* at = self.place_for(size)
        memcpy(at, head, head_size)
        if body_size:
            memcpy(at + head_size, body, body_size)
        return self.placed(size, number, flags)

    cdef int put_shared(self, const char* head, Py_ssize_t head_size, bytes body, uint32_t number,
                        uint32_t flags) except -1:
        """Append one message whose body is shared with other outboxes: only the head is copied."""
        self.reserve(head_size)
        if self.count == self.frames_max:
            self.reserve_record()
        self.append_body(body)    # the last that can fail: from here on frames, bodies and bytes agree
        self.record(head_size, number, flags | SHARED)
        self.messages += 1
        self.firm += (flags & FIRM) != 0
        memcpy(self.data + self.tail, head, head_size)
        self.tail += head_size
        self.size += head_size + PyBytes_GET_SIZE(body)
        self.ledger.used += head_size + PyBytes_GET_SIZE(body)
        if not self.dirty:
            self.mark_dirty()
        return 0

    cdef int put_batch(self, Batch batch, uint32_t number) except -1:
        """Append all messages of a batch, by reference. Who joined them has counted its bytes in the ledger."""
        if self.count == self.frames_max:
            self.reserve_record()
        self.append_body(batch)
        self.record(0, number, MESSAGE | BATCH)
        self.messages += batch.messages
        self.size += batch.size
        if not self.dirty:
            self.mark_dirty()
        return 0

    cdef int mark_dirty(self) except -1:
        self.dirty = self.busy = True
        self.ledger.dirty.append(self)
        if len(self.ledger.dirty) == 1:
            self.ledger._schedule()
        return 0

    cdef int notice(self) except -1:
        if not self.noticed:
            self.noticed = True
            self.ledger.attention.append(self)
        return 0

    cdef int doom(self) except -1:
        cdef list attention = self.ledger.attention
        if not self.doomed:
            self.doomed = True
            if not attention or attention[len(attention) - 1] is not self:    # where `notice` has put it
                attention.append(self)
        return 0

    cdef int note_fault(self, error) except -1:
        """A message could not be written for its client: the core closes the connection at the end of the turn."""
        self.dropped += 1
        self.ledger.dropped_fault += 1
        if self.fault is None and self is not self.ledger.absent:    # there is no connection to close
            self.fault = error
            self.ledger.faults.append(self)
        return 0

    # -- taking out -------------------------------------------------------------------------------------------------

    def clean(self):
        """Taken off the dirty list: its next frame puts it there again."""
        self.dirty = False

    cdef bytes consume(self, Py_ssize_t sent):
        """Forget the first `sent` bytes of what `gather` gave. Returns the rest of a frame sent in part, else b"".

        The caller owns that rest and must send it before anything else.
        """
        cdef Py_ssize_t size, body_size, messages, left = sent
        cdef Frame* frame
        cdef const char* body
        cdef bytes rest = b""
        if left == self.size:
            # The common case: everything went.
            self.ledger.used -= self.size
            self.ledger.messages_out += self.messages
            self.meter.messages_out += self.messages
            self.sent += self.messages
            self.size = self.control_size = self.messages = self.firm = 0
            self.forget_all()
            self.shrink()
            return rest
        while left > 0:
            frame = &self.frames[self.first]
            body_size = self.shared_part(frame, 0, &body) if frame.flags & (SHARED | BATCH) else 0
            size = frame.inline_size + body_size
            messages = 1
            if frame.flags & BATCH and left < size:
                size = (<Batch> self.bodies[0]).upto(frame.done, left, True)
            if frame.flags & BATCH:
                messages = (<Batch> self.bodies[0]).between(frame.done, frame.done + size)
            if left < size:
                if left < <Py_ssize_t> frame.inline_size:
                    rest = PyBytes_FromStringAndSize(self.data + self.head + left, frame.inline_size - left)
                    rest += PyBytes_FromStringAndSize(body, body_size)
                else:
                    left -= frame.inline_size
                    rest = PyBytes_FromStringAndSize(body + left, size - frame.inline_size - left)
                left = size
            left -= size
            self.size -= size
            self.ledger.used -= size
            if frame.flags & MESSAGE:
                self.messages -= messages
                self.firm -= (frame.flags & FIRM) != 0
                self.sent += messages
                self.ledger.messages_out += messages
                self.meter.messages_out += messages
            else:
                self.control_size -= size
            if frame.flags & BATCH and size < body_size:
                frame.done += <uint32_t> size
                break
            if frame.flags & (SHARED | BATCH):
                self.bodies.popleft()
            self.drop_first()
        if self.count == 0:
            self.head = self.tail = 0
            self.shrink()
        return rest

    cdef int shrink(self) except -1:
        if self.capacity > KEPT_BYTES or self.frames_capacity > KEPT_BYTES // <Py_ssize_t> sizeof(Frame):
            self.free_buffers()
        return 0

    def rest(self):
        """Called now and then: give the buffers back if nothing was put in since the last call."""
        if not self.busy:
            self.free_buffers()
        self.busy = False

    def read(self, Py_ssize_t at_most=256 * 1024):
        """Take whole frames of about `at_most` bytes (at least one, if there are any) from the front, as bytes.

        The plain way out, for transports without a socket of their own (TLS) and for tests.
        """
        cdef Py_ssize_t i, taken = 0, mask
        cdef bytes result
        cdef list parts = []
        if self.dead:
            self.squeeze()
        mask = self.frames_capacity - 1
        cdef Py_ssize_t at = self.head, nth = 0, size
        cdef Frame* frame
        cdef const char* body = NULL
        for i in range(self.count):
            frame = &self.frames[(self.first + i) & mask]
            size = frame.inline_size
            if frame.flags & (SHARED | BATCH):
                size += self.shared_part(frame, nth, &body)
            if taken + size > at_most:
                if frame.flags & BATCH:
                    # The frames before it may be more than enough by themselves.
                    size = (<Batch> self.bodies[nth]).upto(frame.done, max(at_most - taken, 0), False)
                    if taken == 0 and size == 0:
                        size = (<Batch> self.bodies[nth]).upto(frame.done, 1, True)
                    parts.append(PyBytes_FromStringAndSize(body, size))
                    taken += size
                    break
                if taken:
                    break
            parts.append(PyBytes_FromStringAndSize(self.data + at, frame.inline_size))
            if frame.flags & (SHARED | BATCH):
                parts.append(PyBytes_FromStringAndSize(body, size - frame.inline_size))
                nth += 1
            at += frame.inline_size
            taken += size
        result = b"".join(parts)
        self.consume(taken)
        return result

    # -- the core's side --------------------------------------------------------------------------------------------

    def hold_back(self, Outbox publisher=None):
        """Does this outbox hold this publisher back? (As the fast lane asks.)"""
        return self.holds_back(publisher)

    def hold_publishers(self):
        """Hold publishers back, whatever is in it, until it has drained."""
        self.begin_pause()

    def drained(self):
        """True once when an outbox that held publishers back has drained far enough to let them go on."""
        if self.pausing and (self.closed or (self.size <= self.resume_at and not self.crowded)):
            self.pausing = self.choked = False
            self.ledger.pausing -= 1
            return True
        return False

    def sit_no_more(self):
        """What its deliveries owe is paid: send what waits."""
        self.sits_out = self.stuck = False
        if self.sink is not None:
            self.sink.flush_now()

    def lose_patience(self):
        """Hold nobody back any more, however full it is: the policy says what happens to messages."""
        self.patient = self.crowded = False
        if self.pausing and not self.choked:
            self.pausing = False
            self.ledger.pausing -= 1

    @property
    def losable(self):
        """Messages that are lost if the connection ends now: unsent, and not kept by a session."""
        return self.messages - self.firm

    def pin(self):
        """No frame now in the outbox may be dropped any more: its counts have been reported."""
        self.pinned = self.count

    def ask_for_more(self):
        """Its client has more to get: let the sink notify when everything is out, in the next turn if it is already."""
        self.refill = True
        if self.size == 0 and not self.dirty:
            self.mark_dirty()

    def close(self):
        """Take nothing more; what is in it may still be sent."""
        self.closed = True

    def discard(self, bytes last=None):
        """Close, and drop what is unsent, but for one `last` frame, which is sent instead.

        Returns the number of messages lost, which are counted as dropped. What a session keeps is not among them.
        """
        cdef Py_ssize_t lost = self.messages - self.firm
        self.closed = True
        if not self.given_up:
            self.given_up = True
            self.lost = lost
        self.ledger.used -= self.size + self.dead
        self.ledger.dropped_disconnect += lost
        self.dropped += lost
        self.size = self.control_size = self.messages = self.firm = 0
        self.forget_all()
        self.free_buffers()
        if last is not None:
            self.put(PyBytes_AS_STRING(last), PyBytes_GET_SIZE(last), NULL, 0, 0, 0)
            self.control_size += PyBytes_GET_SIZE(last)
        return lost


cdef Outbox absent(Ledger ledger):
    cdef Outbox outbox
    if ledger.absent is None:
        outbox = Outbox(ledger, 0, "drop_newest")
        outbox.closed = True
        ledger.absent = outbox
    return <Outbox> ledger.absent
