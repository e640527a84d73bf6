"""The help of `fanlightd check`, `repair` and `backup`."""

from typing import Final

CHECK: Final = """\
Check a store and change nothing: every checksum of every file, and whether each message that waits or is in flight is
there with all that it refers to. It says what there is, what is damaged, where, and what is lost by that.

No broker may run on the folder: take a backup and check that (backup does). Bodies are read a few at a time, so memory
is needed for numbers only, some 200 bytes for each copy that waits.

examples:
  fanlightd check /var/lib/fanlight/data
  fanlightd check --json /var/lib/fanlight/data | jq .problems

exit codes: 0 sound, 1 damaged, 2 it could not be checked (a broker runs on it, no store, a newer format)
"""
REPAIR: Final = """\
Make a damaged store sound. What is lost stays lost: entries that are damaged are given up, and copies of messages that
cannot be read are dropped. It says what it will do, and asks. Damaged files are kept as they are in damaged/.

A broker also starts on a damaged store, and serves what is whole; repair is for a store that check finds sound.
Take a copy of the folder first if there is room.

examples:
  fanlightd repair /var/lib/fanlight/data
  fanlightd repair --yes /var/lib/fanlight/data      for scripts: does not ask

exit codes: 0 sound now, 1 not repaired (the answer was no, or damage is left), 2 it could not be checked
"""
BACKUP: Final = """\
Copy a store to a new folder, synced, then check the copy. A broker may run on the store, and need not know: everything
that it had acknowledged before is in the copy.

TO must not exist, or be an empty folder; it appears when the copy is whole. To restore, start a broker on it, or copy
it to where the broker's `data` is, while no broker runs there: cp -a TO DIR

examples:
  fanlightd backup /var/lib/fanlight/data /backup/2026-11-23
  fanlightd serve --data /backup/2026-11-23          restored

exit codes: 0 copied and sound, 1 copied, but the store is damaged (and so is the copy), 2 not copied
"""
