"""What the settings say of MQTT, as its connections have it, and of what plain TCP is read by."""

import pytest

from fanlight_broker import listeners
from fanlight_broker.config import Settings
from fanlight_broker.config.settings import Tcp
from fanlight_broker.core.protocol_part import PluginError
from fanlight_broker.listeners import new_poller
from fanlight_broker.net.flush import Flusher
from fanlight_broker.parts import PartError
from fanlight_broker.protocols.mqtt.part import methods_of, options_of
from fanlight_broker.wire.ledger import Ledger


class Method:
    """Stands for a plug-in: it is imported by its name."""

    def __init__(self, user: str | None, address: str) -> None:
        self.user = user

    def step(self, data: bytes | None) -> tuple[bytes | None, str | None]:
        return None, self.user


def test_methods_are_imported_by_name() -> None:
    found = methods_of(f" A={__name__}:Method , B=json:loads,")
    assert set(found) == {"A", "B"}
    assert found["A"]("ann", "192.0.2.1").step(None) == (None, "ann")
    assert methods_of("") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SCRAM", "is not NAME=module:class"),
        ("SCRAM=json", "is not NAME=module:class"),
        ("=json:loads", "is not NAME=module:class"),
        ("SCRAM=no_such_module:x", "No module named 'no_such_module'; install it"),
        ("SCRAM=json:no_such_thing", "no_such_thing"),
        ("SCRAM=math:pi", "is no class or function"),
    ],
)
def test_what_cannot_be_had_is_named(text: str, why: str) -> None:
    with pytest.raises(PluginError, match=why) as caught:
        methods_of(text)
    assert "mqtt_authentication_methods" in str(caught.value)


def test_every_setting_reaches_the_connections() -> None:
    settings = Settings(
        mqtt_keep_alive_max=60, mqtt_topic_alias_max=3, mqtt_server_reference="b:1883", mqtt_payload_format_check=True,
        mqtt_authentication_methods=f"A={__name__}:Method", mqtt_filter_suffix=True,
    )
    options = options_of(settings)
    assert (options.keep_alive_max, options.topic_alias_max, options.server_reference) == (60, 3, "b:1883")
    assert options.payload_format_check
    assert options.filter_suffix
    assert "A" in options.methods


async def test_the_poller_is_there_unless_the_settings_say_otherwise() -> None:
    flusher = Flusher(Ledger(1 << 20, lambda: None), lambda outbox, error: None)
    for tcp in (Tcp.AUTO, Tcp.EPOLL):
        poller = new_poller(tcp, flusher)
        assert poller is not None
        poller.close()
        assert poller.fd == -1
    assert new_poller(Tcp.UVLOOP, flusher) is None


async def test_without_epoll_there_is_uvloop_unless_epoll_is_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "Poller", None)
    flusher = Flusher(Ledger(1 << 20, lambda: None), lambda outbox, error: None)
    assert new_poller(Tcp.AUTO, flusher) is None
    with pytest.raises(PartError, match="set tcp to auto or uvloop"):
        new_poller(Tcp.EPOLL, flusher)
