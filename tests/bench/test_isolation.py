"""`python -m fanlight_bench isolation`: what is kept, and that it runs and says so."""

import json

import pytest

from fanlight_bench import isolation


def test_what_is_kept_is_the_median_of_the_rounds() -> None:
    rows = [
        {"pot": "rate", "alone": 100.0, "beside": beside, "alone_us": 1.0, "beside_us": us}
        for beside, us in ((90.0, 1.25), (98.0, 1.0), (97.0, 2.0))
    ]
    (found,) = isolation.kept(rows)
    assert found == {
        "pot": "rate", "kept": 0.97, "least": 0.9, "most": 0.98, "kept_cpu": 0.8, "taken": 0.0, "met": True,
    }


@pytest.mark.parametrize("pot", list(isolation.POTS))
def test_each_pot_is_used_beside_somebody_who_loses_nothing(pot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isolation.main(["--pots", pot, "--rounds", "1", "--duration", "0.05"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["runs"]
    assert row["alone"] > 0 < row["beside"]
    assert "faults" not in row
    assert [found["pot"] for found in report["kept"]] == [pot]


def test_an_unknown_pot_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert isolation.main(["--pots", "rate,gold"]) == 2
    assert "there is no pot gold" in capsys.readouterr().err
