"""The file of bridges: what is read of it, and what is said of each mistake."""

from pathlib import Path

import pytest

from fanlight_broker.bridging.bridge_file import BridgeFileError, load, parse_bridges
from fanlight_broker.bridging.far_side import FarSideError, check_files, overlapping
from fanlight_broker.bridging.link import wait_seconds
from fanlight_broker.bridging.topic_mapping import BridgeRoute, Direction, Mapped, TopicMapping
from fanlight_broker.core.limits import QueuePolicy
from fanlight_broker.protocols.mqtt.version import V3, V5

FOLDER = Path("etc")
WHOLE = """
broker = "plant-7"

[[bridge]]
name = "cloud"
address = ["mqtt.example.com", "[::1]:1999"]
version = "3.1.1"
tls_ca = "ca.pem"
user = "seven"
password_file = "secret"
local_user = "cloud"
local_groups = "links"
window = 10
backoff_seconds_max = 5
queue_policy = "drop_oldest"

[[bridge.route]]
filter = "a/#"
direction = "both"
qos = 0
local_prefix = "x/"
where = "v > 1"
retained = false
"""
SMALL = '[[bridge]]\nname = "n"\naddress = "h"\n[[bridge.route]]\nfilter = "a"\n'


def test_all_of_a_file_is_read() -> None:
    found = parse_bridges(WHOLE, "b.toml", FOLDER)
    assert found.broker == "plant-7"
    (bridge,) = found.bridges
    assert bridge.addresses == (("mqtt.example.com", 8883), ("::1", 1999))
    assert (bridge.version, bridge.tls, bridge.tls_ca, bridge.password_file) == (
        V3, True, FOLDER / "ca.pem", FOLDER / "secret"
    )
    assert (bridge.client_id, bridge.local_user, bridge.local_client_id) == ("plant-7-cloud", "cloud", "$bridge/cloud")
    assert bridge.local_groups == {"bridges", "links"}
    assert (bridge.window, bridge.backoff_seconds_max, bridge.queue_policy) == (10, 5, QueuePolicy.DROP_OLDEST)
    assert bridge.routes == (BridgeRoute("a/#", Direction.BOTH, 0, "x/", "", "v > 1", retained=False),)


def test_what_is_left_out_has_its_default() -> None:
    (bridge,) = parse_bridges(SMALL, "b.toml", FOLDER).bridges
    assert bridge.addresses == (("h", 1883),)
    assert (bridge.version, bridge.tls, bridge.client_id, bridge.local_user) == (V5, False, "fanlight-n", "bridge:n")
    assert bridge.routes == (BridgeRoute("a"),)
    assert parse_bridges("", "b.toml", FOLDER).bridges == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nmae = 1", "there is no 'nmae'; did you mean"),
        ("window = 0", "window: a whole number from 1 to 10000; got 0"),
        ("window = true", "window: a whole number"),
        ("connect_seconds = 'x'", "connect_seconds: a number from 0.1 to 300; got 'x'"),
        ("tls = 1", "tls: is true or false; got 1"),
        ("tls = false\ntls_ca = 'x'", "tls_ca: and tls = false"),
        ("tls_key = 'x'", "tls_key: needs tls_certificate"),
        ("password_file = 'x'", "password_file: needs a user"),
        ("version = '4'", "version: \"5.0\" or \"3.1.1\"; got '4'"),
        ("queue_policy = 'x'", "queue_policy: one of drop_newest, drop_oldest; got 'x'"),
        ("local_groups = 'anonymous'", "not in the group anonymous"),
        ("backoff_seconds_min = 90", "backoff_seconds_max: is less than backoff_seconds_min"),
        ("only_wanted = true\nversion = '3.1.1'", 'only_wanted: needs version "5.0"'),
        ("client_id = 3", "client_id: is a text; got 3"),
    ],
)
def test_what_is_wrong_with_a_bridge_is_said(line: str, said: str) -> None:
    with pytest.raises(BridgeFileError) as raised:
        parse_bridges(SMALL.replace("[[bridge.route]]", f"{line}\n[[bridge.route]]"), "b.toml", FOLDER)
    (problem,) = raised.value.problems
    assert problem.startswith("b.toml, bridge n: ")
    assert said in problem


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("filter = 'a/#/b'", "filter 'a/#/b': "),
        ("filter = ''", "filter '': "),
        ("filter = '$share/g/a'", "shared subscriptions"),
        ("filter = 'a'\nqos = 2", "qos: a whole number from 0 to 1; got 2"),
        ("filter = 'a'\ndirection = 'up'", "direction: one of out, in, both; got 'up'"),
        ("filter = 'a'\nlocal_prefix = '+/'", "local_prefix: is the beginning of a topic"),
        ("filter = 'a'\nwhere = 'x >'", "where: "),
        ("filter = 'a'\n[[bridge.route]]\nfilter = 'a'", "two routes of one direction have the filter 'a'"),
        ("direction = 'in'", "filter: say which topics"),
        ("filter = 'a'\nprefix = 'x'", "there is no 'prefix'"),
    ],
)
def test_what_is_wrong_with_a_route_is_said(line: str, said: str) -> None:
    with pytest.raises(BridgeFileError, match=r"b\.toml, bridge n: route") as raised:
        parse_bridges(SMALL.replace('filter = "a"', line), "b.toml", FOLDER)
    assert said in str(raised.value)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text("x = 1\n" + SMALL.replace('"h"', '"h:0"') + SMALL.replace('name = "n"', 'name = "a/b"') + SMALL * 2)
    with pytest.raises(BridgeFileError) as raised:
        load(file)
    assert [problem.removeprefix(f"{file}") for problem in raised.value.problems] == [
        ": there is no 'x' in a file of bridges, but broker and [[bridge]]",
        ", bridge n: address: host:port, such as mqtt.example.com:8883; got 'h:0'",
        ", bridge a/b: name: 1 to 64 characters, without / + #",
        ", bridge n: name: there are two bridges 'n'",
    ]
    with pytest.raises(BridgeFileError, match="cannot be read"):
        load(tmp_path / "none")
    for text in ("[", "bridge = 1", "[[bridge]]\n" * 101):
        with pytest.raises(BridgeFileError):
            parse_bridges(text, "b.toml", FOLDER)


def test_files_that_cannot_be_read_are_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("no PEM, a secret")
    for line, said in (
        ("user = 'u'\npassword_file = 'none'", "password_file .*none: cannot be read"),
        ("tls_ca = 'b'", "tls_ca .*b: "), ("tls_certificate = 'b'", "tls_certificate .*b: "),
        ("tls_certificate = 'b'\ntls_key_password_file = 'none'", "tls_key_password_file .*none"),
    ):
        text = SMALL.replace("[[bridge.route]]", f"{line}\n[[bridge.route]]")
        (bridge,) = parse_bridges(text, "b.toml", tmp_path).bridges
        with pytest.raises(FarSideError, match=said) as raised:
            check_files(bridge)
        assert "secret" not in str(raised.value)


def test_topics_are_mapped_by_prefix_and_each_goes_once() -> None:
    routes = [
        BridgeRoute("t/#", Direction.BOTH, 0, "in/", "out/"), BridgeRoute("t/+", Direction.OUT, 1, "in/", "out/"),
        BridgeRoute("", Direction.IN, 1, "clock", "time/now"),
    ]
    out, back = TopicMapping(routes, outward=True), TopicMapping(routes, outward=False)
    assert (len(out), len(back)) == (2, 2)
    assert out.of("in/t/1", ()) == [Mapped("out/t/1", 1, retained=True)]
    assert out.of("in/t/1", (1,)) == [Mapped("out/t/1", 0, retained=True)]
    assert out.of("in/t/1", (9,)) == out.of("x", ()) == out.of("x", (1,)) == []
    assert back.of("out/t", ()) == [Mapped("in/t", 0, retained=True)]
    assert back.of("time/now", ()) == [Mapped("clock", 1, retained=True)]


def test_routes_that_would_bring_back_what_was_sent_are_known() -> None:
    assert overlapping([
        BridgeRoute("a/#"), BridgeRoute("a/1", Direction.IN), BridgeRoute("b/#", Direction.IN),
        BridgeRoute("c", Direction.BOTH), BridgeRoute("a/#", Direction.IN, remote_prefix="x/"),
    ]) == {2, 4}


def test_back_off_doubles_and_has_jitter() -> None:
    (bridge,) = parse_bridges(SMALL, "b.toml", FOLDER).bridges
    assert [wait_seconds(bridge, attempts, 1.0) for attempts in (0, 1, 2, 5, 6, 1_000)] == [1, 2, 4, 32, 60, 60]
    assert wait_seconds(bridge, 2, 0.0) == 2
