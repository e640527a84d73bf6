"""/settings: what is in force and where it came from, also when the file was changed since."""

from pathlib import Path
from typing import Any

from fanlight_broker.config import Sources
from fanlight_broker.config.load import load
from fanlight_broker.settings_view import settings_view


async def rows(sources: Sources, after: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows by name, and the rest of the answer, with the file changed to `after` since it was read."""
    settings = load(sources).settings
    if after is not None:
        assert sources.config is not None
        sources.config.write_text(after)
    status, answer = await settings_view(settings)
    assert status == 200
    return {row["name"]: row for row in answer["settings"]}, answer


async def test_each_setting_says_where_it_came_from(tmp_path: Path) -> None:
    file = tmp_path / "fanlight.toml"
    file.write_text('outbox_bytes_max = "2MiB"\n')
    found, answer = await rows(
        Sources(flags={"http_port": "0"}, environment={"FANLIGHT_PASSWORD": "very secret"}, config=file)
    )
    assert (found["outbox_bytes_max"]["value"], found["outbox_bytes_max"]["place"]) == ("2MiB", f"{file}, line 1")
    assert found["http_port"]["place"] == "flag --http-port"
    assert found["http_port"]["needs_restart"]
    assert found["mqtt_port"]["place"] == "default"
    assert "very secret" not in str(answer)
    assert found["password"]["value"] == "(set, not shown)"
    assert {row["waiting"] for row in found.values()} == {None}


async def test_a_change_in_the_file_waits_beside_the_value_in_force(tmp_path: Path) -> None:
    file = tmp_path / "fanlight.toml"
    file.write_text("http_port = 7000\n")
    found, _ = await rows(Sources(config=file), after="http_port = 7001\n")
    assert (found["http_port"]["value"], found["http_port"]["waiting"]) == ("7000", "7001")


async def test_a_file_that_is_wrong_now_hides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "fanlight.toml"
    file.write_text("http_port = 7000\n")
    found, answer = await rows(Sources(config=file), after="http_port = 99999\n")
    assert found["http_port"]["value"] == "7000"
    assert "http_port" in answer["problems"][0]
