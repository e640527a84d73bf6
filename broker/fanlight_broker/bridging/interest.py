"""What the clients of a Fanlight on the far side want: learnt from its $SYS topic, and asked about each message.

    {"everything": false, "filters": ["sensors/#", ...], "no_local": {"plant-7-cloud": ["alarms/#"], ...}}

`core/interest.py` makes it. Until it is known, and where it cannot be read, everything is wanted.
"""

import json
from typing import Final

import matchcore
from fanlight_broker.bridging.topic_mapping import SYNTAX
from fanlight_broker.core.interest import OCTETS_MAX

TOPIC: Final = "$SYS/broker/interest"


class Interest:
    """client_id: of the bridge on the far side, whose own No Local subscriptions want nothing that it sends."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._filters: matchcore.FilterIndex | None = None

    def __len__(self) -> int:
        return 0 if self._filters is None else len(self._filters)

    @property
    def known(self) -> bool:
        return self._filters is not None

    def update(self, payload: bytes) -> None:
        """What the topic says now."""
        self._filters = self._read(payload)

    def _read(self, payload: bytes) -> matchcore.FilterIndex | None:
        if len(payload) > OCTETS_MAX:  # a Fanlight says "everything" before that; it is read in one piece
            return None
        try:
            said = json.loads(payload)
            if said["everything"] is not False:
                return None
            filters = set(said["filters"])
            for client, own in said["no_local"].items():
                if client != self._client_id:
                    filters.update(own)
            index = matchcore.FilterIndex()
            for number, filter in enumerate(sorted(filters)):
                syntax, _, text = filter.partition(":")
                index.insert(text, number, syntax=syntax)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None  # of a later version, or of somebody else
        return index

    def wants(self, topic: str) -> bool:
        return self._filters is None or self._filters.match_any(topic, syntax=SYNTAX)
