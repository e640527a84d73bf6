"""Scenario files: those that are shipped are whole, and mistakes in one's own are told with their names."""

import json
from pathlib import Path

import pytest

from fanlight_bench.load import scenario
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.target import BadUrl, parse


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_that_is_shipped_can_be_read_and_goes_through_json(name: str) -> None:
    made = scenario.load(name)
    assert made.name == name
    assert scenario.of_json(json.loads(json.dumps(scenario.as_json(made)))) == made


def test_a_scenario_of_ones_own_is_given_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\ntopic = "a/{i}"\ntopics = 3\n[background]\nsubscriptions = 5\nfilters = ["b"]\n')
    made = scenario.load(str(path))
    assert (made.name, made.filters, made.streams) == ("mine", ("a/{i}",), 3)
    assert made.background.subscriptions == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = ", "mine: "),
        ('title = "x"', "topic"),
        ('title = "x"\ntopic = "a"\nspeed = 3', "speed is unknown"),
        ('title = "x"\ntopic = "a"\nwindow = "big"', "window is 'big'"),
        ('title = "x"\ntopic = "a"\npublishers = true', "publishers is True"),
        ('title = "x"\ntopic = "a"\nfilters = "a"', "filters is 'a'"),
        ('title = "x"\ntopic = "a/+"', "no wildcards"),
        ('title = "x"\ntopic = "a"\nqos = 3', "qos 3"),
        ('title = "x"\ntopic = "a"\npayload_bytes = 20', "payload_bytes is 20; at least 21"),
        ('title = "x"\ntopic = "a"\nslow = 2', "2 slow subscribers of 1"),
        ('title = "x"\ntopic = "a"\n[background]\nsubscriptions = 3', "filters"),
        ('title = "x"\ntopic = "a"\n[properties]\nexpiry = 3', "expiry"),
        ('title = "x"\ntopic = "a"\n[headers]\nunit = "{j}"', "{j} is not understood"),
        ('title = "x"\ntopic = "a"\n[background]\nwhere = "a = {i%0}"', "division by zero"),
        ('title = "x"\ntopic = "a"\n[background]\nmet_by = {b = "C"}\nwhere = "a"', "met by b, which is no header"),
        ('title = "x"\ntopic = "a"\n[headers]\na = "b"\n[background]\nmet_by = {a = "b"}', "met_by, and no where"),
        ('title = "x"\ntopic = "{i}"\ntopics = 70000\naliases = true', "65,535"),
    ],
)
def test_a_mistake_is_told(text: str, why: str) -> None:
    with pytest.raises(BadScenario, match=why):
        scenario.parse("mine", text)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadScenario, match="no scenario fan-outs: there are acknowledged"):
        scenario.load("fan-outs")


def test_changes_are_checked_as_the_file_is() -> None:
    with pytest.raises(BadScenario, match="batch is 0"):
        Scenario("x", "x", "a").with_changes(batch=0)


@pytest.mark.parametrize(
    ("url", "protocol", "port", "shown"),
    [
        ("fanlight://host", "fanlight", 7420, "fanlight://host:7420"),
        ("fanlight://host?syntax=mqtt", "fanlight", 7420, "fanlight://host:7420?syntax=mqtt"),
        ("mqtt://u:p%40ss@host:1", "mqtt", 1, "mqtt://u@host:1"),
        ("mqtt5://[::1]", "mqtt5", 1883, "mqtt5://[::1]:1883"),
        ("nats://127.0.0.1/", "nats", 4222, "nats://127.0.0.1:4222"),
    ],
)
def test_a_url_says_protocol_and_place_and_is_shown_without_its_password(
    url: str, protocol: str, port: int, shown: str
) -> None:
    target = parse(url)
    assert (target.protocol, target.port, target.url) == (protocol, port, shown)
    assert target.password == ("p@ss" if "@ss" in url or "%40" in url else None)


@pytest.mark.parametrize("url", ["http://host", "mqtt://", "host:1883", "mqtt://host/path", "mqtt://host:x"])
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        parse(url)
