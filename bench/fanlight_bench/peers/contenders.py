"""Who takes part: a broker, and the protocol that it is spoken to in. One broker may take part more than once."""

from collections.abc import Sequence
from dataclasses import dataclass

from fanlight_bench.peers.amqtt import Amqtt
from fanlight_bench.peers.fanlight import Fanlight
from fanlight_bench.peers.mosquitto import Mosquitto
from fanlight_bench.peers.nats import Nats, NatsMqtt, NatsOnOne
from fanlight_bench.peers.null import Null
from fanlight_bench.peers.peer import Peer
from fanlight_bench.peers.rabbitmq import RabbitMQ

OURS = ("fanlight-native", "fanlight-mqtt", "fanlight-mqtt5")
FLOOR = ("null-native", "null-mqtt")
PEERS = ("nats-1cpu", "nats", "nats-mqtt", "mosquitto", "rabbitmq", "amqtt")


@dataclass(frozen=True)
class Contender:
    """A column of the comparison."""

    name: str
    title: str
    peer: Peer
    schemes: tuple[str, ...]  # of the URLs that it is reached by; a scenario takes the first that it can be put in
    every: int = 1            # takes part in every n-th round, where a run or two show the difference from ours

    def scheme(self, known: Sequence[str]) -> str | None:
        """The one in which it takes part in a scenario that can be put in these; None: in none."""
        return next((scheme for scheme in self.schemes if scheme in known), None)


_FANLIGHT, _NULL = Fanlight(), Null()

# In this order they run, in turns: neighbours here are neighbours in time.
CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("fanlight-native", "Fanlight, native protocol", _FANLIGHT, ("fanlight", "fanlight+tls")),
        Contender("fanlight-mqtt", "Fanlight, MQTT 3.1.1", _FANLIGHT, ("mqtt", "mqtt+tls", "mqtt+ws")),
        Contender("nats-1cpu", "nats-server on one processor", NatsOnOne(), ("nats", "nats+tls", "nats+ws")),
        Contender("fanlight-mqtt5", "Fanlight, MQTT 5", _FANLIGHT, ("mqtt5",), every=3),
        Contender("nats", "nats-server as it comes", Nats(), ("nats",), every=3),
        Contender("mosquitto", "Mosquitto", Mosquitto(), ("mqtt", "mqtt5", "mqtt+tls")),
        Contender("nats-mqtt", "nats-server, its MQTT listener", NatsMqtt(), ("mqtt",), every=3),
        Contender("rabbitmq", "RabbitMQ, its MQTT plugin", RabbitMQ(), ("mqtt",), every=3),
        Contender("amqtt", "amqtt", Amqtt(), ("mqtt",), every=3),
        Contender("null-native", "the null broker, native protocol", _NULL, ("fanlight",), every=3),
        Contender("null-mqtt", "the null broker, MQTT 3.1.1", _NULL, ("mqtt",), every=3),
    )
}


def peers() -> list[Peer]:
    """Each broker once."""
    return list({id(contender.peer): contender.peer for contender in CONTENDERS.values()}.values())
