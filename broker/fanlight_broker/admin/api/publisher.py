"""Who publishes what comes by HTTP, and reads what is shown: a subscriber without a connection, for one request.

To see views is one permission (`admin:read`); to see what is in a message is another, `subscribe` on its topic, as for
any client.
"""

from fanlight_broker.admin.api.declared import Call
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.core.clients import new_inbox
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.shares import principal_of
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.wire.message import Format

NAME = "http"


class Publishers:
    def __init__(self, gatekeeper: Gatekeeper, format: Format) -> None:
        self._gatekeeper, self._format = gatekeeper, format

    def of(self, call: Call, home: Namespace) -> Subscriber:
        """Who a caller is for the core. What it publishes is counted for its user, or its address."""
        identity, address = call.identity, call.request.remote or ""
        origin = self._gatekeeper.origin_of(call.request, identity)
        principal = principal_of(identity.user, address, verified=identity.verified, namespace=home.name)
        return Subscriber(
            NAME, identity.user, NAME, self._format, home.shares.of(principal), new_inbox(), identity.verified,
            identity.label, origin=origin,
        )
