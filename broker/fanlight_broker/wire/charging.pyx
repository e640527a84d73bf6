# cython: language_level=3
"""What a session's window keeps, charged to a joint account (ledger.pxd) of the same principal."""

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.ledger cimport Account, Ledger, PotShare
from fanlight_broker.wire.message cimport HOLDER
from fanlight_broker.wire.queue cimport Queue
from fanlight_broker.wire.tag_set cimport TagSet
from fanlight_broker.wire.window cimport Window


def charge_window(Window window not None, TagSet received not None, Account account not None, PotShare pot not None):
    """Charge the messages that a window and its queue keep to a joint account, and its tables to a joint pot.

    The principal has counted all of it already, and the pot too what the tables take now.
    """
    cdef Flight flight
    cdef Queue queue = window.queue
    cdef Ledger ledger = window.ledger
    for flight in [*window.inflight.flights(), *queue.flights]:
        if flight.message is None:    # its tag alone is in use
            account.count(HOLDER)
            continue
        flight.message.add_holder(ledger, account)
        flight.message.drop_holder(ledger, queue.account)
    queue.account = account
    window.inflight.pot = pot
    received.pot = pot
