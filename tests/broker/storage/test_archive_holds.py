"""Retention of a broker's archive and those who have not read yet (fanlight_archive.holds, docs/archive.md)."""

from dataclasses import replace
from pathlib import Path

import pytest

from fanlight_archive.holds import keep
from tests.broker.storage.archived import Archived
from tests.captured_logs import capture_logs


def test_retention_waits_for_a_hold_within_its_bound_and_says_when_the_bound_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment has one message, and all closed ones are due at once."""
    monkeypatch.setattr("fanlight_broker.storage.writer_thread.RETENTION_SECONDS", 0.001)
    limits = {"archive_segment_bytes_max": 1, "archive_bytes_max": 1}
    archived = Archived(tmp_path / "archive", archive_hold_bytes_max=1 << 30, **limits)
    archive, broker, peer = archived.archive, archived.world.broker, archived.world.connect("p")
    keep(archived.folder, "lake", archive.writer_thread.writer.manifest.archive, 1, 1, "a table")
    (archived.folder / "holds/torn.json").write_text("{")
    with capture_logs() as lines:
        for number in range(4):
            peer.publish("a", b"%d" % number, 0)
            archived.settled()
        archived.loop.run_until(lambda: archive.state.held_bytes > 0 and archive.state.start == 1)
        gauges = archive.gauges()
        assert (gauges["archive_holds"], gauges["archive_holds_ignored"]) == (1, 1)
        lake, torn = archive.hold_views()
        assert (lake["hold"], lake["by"], lake["behind"], lake["problem"]) == ("lake", "a table", 3, None)
        assert torn["problem"].startswith("it cannot be read")
        assert archive.counters()["archive_holds_overruled"] == 0
        broker.use(replace(broker.limits, archive_hold_bytes_max=1))
        archived.loop.run_until(lambda: archive.state.start == 3)
        archived.loop.run_until(lambda: archive.state.overruled == 2)
        broker.use(replace(broker.limits, archive_hold_bytes_max=0))
        peer.publish("a", b"4", 0)
        archived.settled()
        archived.loop.run_until(lambda: archive.state.start == 4)
        archive.stop()
    assert archive.counters()["archive_holds_overruled"] == 2  # with 0 there is nothing to overrule
    warned = [(line["event"], line.get("hold"), line.get("holds")) for line in lines if line["log_level"] == "warning"]
    assert ("archive_hold_ignored", "torn", None) in warned
    assert warned.count(("archive_hold_ignored", "torn", None)) == 1
    assert ("archive_holds_overruled", None, ["lake"]) in warned
