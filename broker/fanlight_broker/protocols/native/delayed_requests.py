"""QUEUE verbs about delayed messages: list those that wait, cancel one (section 3.11)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fanlight_broker.core import errors
from fanlight_broker.core.delayed_message import DelayedEntry
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.protocols.native.codec import PACKER
from fanlight_broker.protocols.native.fields import OptionMap
from fanlight_broker.protocols.native.frames import U64_MAX
from fanlight_broker.protocols.native.shown import shown_message
from fanlight_broker.wire.message import Message

LOOKED_AT: Final = 1_000  # of the first messages, for those that a client may see
LISTED: Final = 100
LISTED_MAX: Final = 200
SHOWN_BYTES: Final = 128  # of a payload

Answer = Callable[[Mapping[str, Any]], None]


class DelayedRequests:
    """
    room    bytes of an answer
    commit  called with what is to be called when all that was changed is stored
    """

    def __init__(
        self, broker: Namespace, room: Callable[[], int], commit: Callable[[Callable[[], None]], None]
    ) -> None:
        self._broker = broker
        self._room = room
        self._commit = commit

    def listed(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        most, size = arguments.number("limit"), arguments.number("payload_bytes")
        most = min(LISTED if most is None else max(most, 1), LISTED_MAX)
        size = min(SHOWN_BYTES if size is None else size, self._room() // 2)
        delayed, share, sees_all = self._broker.delayed, client.subscriber.share, self._sees_all(client)
        entries = [each for each in delayed.page(0, LOOKED_AT) if sees_all or is_of(each, client.subscriber)]
        shown = entries[:most]
        on_disk = [each.id for each in shown if delayed.message(each.id) is None]
        now = self._broker.ledger.now
        result = {
            "count": len(delayed) if sees_all else len(entries) if client.subscriber.namespace
            else share.used(SharedPot.DELAYED_MESSAGES),
            "next_seconds": max(0.0, entries[0].due - now) if entries else None,
        }

        def show(found: Mapping[int, Message]) -> None:
            answer({**result, "messages": self._shown(shown, found, size)})

        if on_disk:
            delayed.journal.read_delayed(on_disk, show)
        else:
            show({})

    def _shown(self, entries: Sequence[DelayedEntry], found: Mapping[int, Message], size: int) -> list[dict[str, Any]]:
        """Those that wait still, as far as there is room."""
        delayed, now, room = self._broker.delayed, self._broker.ledger.now, self._room()
        shown: list[dict[str, Any]] = []
        for entry in entries:
            message = delayed.message(entry.id) or found.get(entry.id)
            if message is None or delayed.find(entry.id) is None:
                continue
            item = shown_message(message, size, self._room() // 2) | {
                "id": entry.id, "seconds": max(0.0, entry.due - now), "client": entry.publisher.name,
                "size": len(message.payload),
            }
            room -= len(PACKER.pack(item))
            if room < 0:
                break
            shown.append(item)
        return shown

    def cancel(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        id = arguments.number("id", U64_MAX)
        if not id:
            raise errors.ProtocolViolation("QUEUE cancel without id")
        entry = self._broker.delayed.find(id)
        if entry is None:
            answer({"cancelled": False})
            return
        if not is_of(entry, client.subscriber) and not self._sees_all(client):
            raise errors.NotPermitted("the delayed message is another user's")
        if self._broker.position.refusing:
            raise errors.StoreUnavailable
        self._broker.delayed.cancel(id)
        self._commit(lambda: answer({"cancelled": True}))

    def _sees_all(self, client: Client) -> bool:
        return self._broker.enforcement.reads_all(client.subscriber)


def is_of(entry: DelayedEntry, asker: Subscriber) -> bool:
    """Is a delayed message the asker's own? In a namespace all have one share: there it is by the name, too."""
    publisher = entry.publisher
    return publisher.share.root is asker.share.root and (not asker.namespace or publisher.name == asker.name)
