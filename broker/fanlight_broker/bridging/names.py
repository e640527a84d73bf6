"""Names that bridges have in the broker."""

from typing import Final

LOCAL_CLIENT: Final = "$bridge/"  # begins the client identifiers of near sessions
LOCAL_USER: Final = "bridge:"  # begins users of bridges; those of a password file have no colon in their names
GROUP: Final = "bridges"  # that all these users are in
