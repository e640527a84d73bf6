"""Names that bridges have in the broker."""

from typing import Final

from fanlight_broker.protocols.mqtt.options import OWN_CLIENTS

LOCAL_CLIENT: Final = OWN_CLIENTS  # begins the client identifiers of near sessions
LOCAL_USER: Final = "bridge:"  # begins users of bridges; those of a password file have no colon in their names
GROUP: Final = "bridges"  # that all these users are in
