"""python -m fanlight_bench sizing: every kind has a size that can be, and the broker counts what it keeps."""

import json

import pytest

from fanlight_bench.sizing import main


def test_each_kind_is_counted_by_the_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--scale", "0.02"]) == 0
    sizes = json.loads(capsys.readouterr().out)["bytes"]
    assert set(sizes) == {
        "retained message", "session that is away, with a subscription", "message that waits for a session",
        "idle connection",
    }  # fmt: skip
    for kind, size in sizes.items():
        assert size["count"] > 0
        if kind != "idle connection":
            assert 20 <= size["counted"] < 10_000, kind  # at least the body


def test_a_wrong_scale_is_the_command_lines_fault() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--scale", "0"])
    assert ended.value.code == 2
