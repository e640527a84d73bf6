# cython: language_level=3
"""Records one message in the archive, for Python: what a stream keeps of a message that is being fanned out."""

from fanlight_broker.wire.archive_tap cimport ArchiveTap
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState, begin, finish


def record(ArchiveTap tap not None, Ledger ledger not None, Outbox publisher, Message message not None):
    """publisher: its outbox, or None."""
    cdef FanoutState publication
    begin(&publication, message)
    try:
        tap.record(ledger, publisher, &publication)
    finally:
        finish(&publication)
