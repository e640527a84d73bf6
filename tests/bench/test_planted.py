"""`python -m fanlight_bench planted`: that what is planted is found, and that its figures are of what was planted."""

import re

import pytest

from fanlight_bench.pipeline import planted
from tests import require

LINE = re.compile(r"\| ([\w, ]+) \| (\w+): [^|]*\| ([\d, ]+) \| ([\d., –]+) \| [\d.–]+ \| ([\d.–]+) \|")


def test_what_is_planted_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the samples; the whole data is for people."""
    monkeypatch.setenv("FANLIGHT_REAL_DATA", str(require.SAMPLES))
    assert planted.main(["--seed", "2"]) == 0
    lines = LINE.findall(capsys.readouterr().out)
    assert len(lines) == 9
    scores = {(data, fault): (int(count.split(", ")[-1 if fault != "silent" else 0]), recall.split(", "), beside)
              for data, fault, count, recall, beside in lines}  # fmt: skip
    for data in ("routes, afternoon", "prices, a message a day"):
        for fault in ("silent", "rate", "size"):
            count, recall, beside = scores[(data, fault)]
            assert count >= 3
            assert float(recall[0 if fault == "silent" else -1]) >= 0.75, (data, fault)
            assert float(beside) > 0.8, (data, fault)
