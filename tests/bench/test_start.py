"""`python -m fanlight_bench start`: its report, and that it says when there was no start."""

import json
import sys
from pathlib import Path

import pytest

from fanlight_bench.launch import LaunchError, byte_code
from fanlight_bench.start import main


def test_the_report_has_time_processor_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "1", "--no-http"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["runs"], report["arguments"]) == (1, ["--no-http"])
    for name in ("seconds_to_listening", "cpu_seconds", "resident_mb"):
        assert report[name]["least"] == report[name]["median"] > 0


def test_a_broker_that_does_not_start_is_an_error_with_its_words() -> None:
    with pytest.raises(LaunchError, match="there is no --no-such-setting"):
        main(["--runs", "1", "--no-such-setting"])


def test_a_broker_finds_its_modules_compiled_where_python_may_write_no_byte_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    environment = byte_code.__wrapped__()
    assert environment["PYTHONDONTWRITEBYTECODE"] == ""  # any other value would forbid it
    assert list(Path(environment["PYTHONPYCACHEPREFIX"]).rglob("fanlight_broker/assembly.*.pyc"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert byte_code.__wrapped__() == {}
