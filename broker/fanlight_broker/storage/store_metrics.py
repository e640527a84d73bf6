"""What the store shows of itself: how much it has, how much waits for it, how long syncs take."""

from collections.abc import Mapping
from typing import Final

from fanlight_broker.core.metrics import MetricFamily, histogram
from fanlight_broker.storage.free_space import FreeSpace
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.store import Store
from fanlight_broker.storage.tally import Tally
from fanlight_broker.wire.ledger import Ledger

COUNTERS: Final[Mapping[str, str]] = {
    "store_messages": "Messages written to the store",
    "store_messages_unreadable": "Messages that were lost because the disk has them no longer",
    "store_pages_unreadable": "Parts of queues that were lost because the disk has them no longer",
    "store_groups": "Groups of entries written and synced together",
    "store_bytes_written": "Bytes written to the store",
    "store_spins": "Times that the writer of the store waited for work without sleeping, and got it",
    "store_spins_in_vain": "Times that it waited so, and slept then",
    "store_compactions": "Times that what was left of sparse files was copied into a new one",
    "store_compactions_given_up": "Compactions that have failed; what they were to copy is where it was",
    "store_compaction_bytes": "Bytes that compactions have written",
    "store_indexes_walked": "Files that were read as a whole, because they had no index",
    "store_entries_unsure": "Entries whose sync failed after they were given back as written",
}
GAUGES: Final[Mapping[str, str]] = {
    "store_bytes": "Bytes of the store's files, those ahead of time included",
    "store_live_bytes": "Bytes of messages that wait, are in flight or retained; on the disk only: in each queue",
    "store_segments": "Files of the store's log",
    "store_body_segments": "Files that are kept for messages only, and not read at a start",
    "store_body_bytes": "Bytes of the entries in these",
    "store_body_live_ratio": "The part of these bytes that belongs to messages that wait or are in flight, about",
    "store_index_bytes": "Memory of the indexes of files",
    "store_spare_files": "Files made ahead of time, or waiting for their next use",
    "store_buffer_bytes": "Bytes of changes that wait for the disk",
    "store_backlog_messages": "Places in queues whose messages are on the disk only",
    "store_backlog_bytes": "Bytes of these, counted in each queue",
    "store_page_bytes": "Bytes on the disk of queues that keep no journal (see data_pages_bytes_max)",
    "store_free_bytes": "Bytes that are free in the store's file system (see data_free_bytes_min)",
    "store_refusing": "1 while what needs the store is refused: the disk fails, or has too little room",
}


def counters(store: Store) -> Mapping[str, int]:
    log = store.log
    return {
        "store_messages": store.records.messages,
        "store_messages_unreadable": store.pager.unreadable if store.pager is not None else 0,
        "store_pages_unreadable": store.pages.unreadable if store.pages is not None else 0,
        "store_groups": log.groups,
        "store_bytes_written": log.bytes_written,
        "store_spins": log.spins,
        "store_spins_in_vain": log.spins_in_vain,
        "store_compactions": log.compactions,
        "store_compactions_given_up": log.compactions_given_up,
        "store_compaction_bytes": log.compacted_bytes,
        "store_indexes_walked": log.indexes_walked,
        "store_entries_unsure": log.unsure,
    }


def gauges(store: Store, ledger: Ledger, space: FreeSpace) -> dict[str, float]:
    used, spare = store.log.files()
    bodies, live = store.log.body_bytes()
    return {
        "store_bytes": sum(segment.capacity for segment in used) + sum(segment.capacity for segment in spare),
        "store_live_bytes": ledger.stored + store.records.backlog_bytes,
        "store_segments": len(used),
        "store_body_segments": store.log.body_segments,
        "store_body_bytes": bodies,
        "store_body_live_ratio": live / bodies if bodies else 1.0,
        "store_index_bytes": store.log.index_bytes,
        "store_spare_files": len(spare),
        "store_buffer_bytes": store.log.buffered,
        "store_backlog_messages": store.records.backlog,
        "store_backlog_bytes": store.records.backlog_bytes,
        "store_page_bytes": store.pages.nbytes if store.pages is not None else 0,
        "store_free_bytes": space.free,
        "store_refusing": int(store.position.refusing),
    }


def families(log: Log) -> list[MetricFamily]:
    return [
        _family("store_sync_seconds", "Time of each sync of the store", log.sync_seconds),
        _family("store_group_entries", "Entries that were synced together", log.group_entries),
        _family("store_group_bytes", "Bytes that were synced together", log.group_bytes),
    ]


def _family(name: str, help: str, tally: Tally) -> MetricFamily:
    return histogram(name, help, tally.counted(), tally.sum)
