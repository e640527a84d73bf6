"""Two listeners of one broker, of which one acknowledges from memory: the other's clients wait for the disk."""

import asyncio

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits, StoreDurability
from fanlight_broker.net.clock import monotonic
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import Listener
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.protocols.native.frames import Type
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.broker.core.held_journal import HeldJournal
from tests.system.test_transports import give_up, soon
from tests.system.wire import Peer, ping, subscribe


async def test_the_clients_of_a_listener_get_the_durability_that_it_promises() -> None:
    loop = asyncio.get_running_loop()
    broker = Broker(Limits(), lambda: flusher.schedule(loop), loop.call_soon)
    flusher = Flusher(broker.ledger, give_up)
    journal = HeldJournal(broker)
    authenticator = PasswordAuthenticator(Credentials())
    listeners = [
        Listener(
            "native", broker, NativeConnection, authenticator, clock=monotonic, shared=ReceiveBuffer(),
            durability=durability,
        )
        for durability in (None, StoreDurability.MEMORY)
    ]
    ports = [(await each.start("127.0.0.1", 0))[1] for each in listeners]
    async with await Peer.connect(ports[0]) as careful, await Peer.connect(ports[1]) as hasty:
        await careful.send(subscribe(1, 1, "a", consumer="a", durable=True, ack=True), ping(2))
        await soon(lambda: broker.acknowledgements.waiting > 0)
        await hasty.send(subscribe(1, 1, "b", consumer="b", durable=True, ack=True), ping(2))
        assert [each[0] for each in await hasty.until(Type.PONG, 2)] == [Type.OK, Type.PONG]
        waiting = broker.acknowledgements.waiting
        journal.sync()
        assert (waiting, broker.acknowledgements.waiting) == (2, 0), "of the first client: OK, and PONG behind it"
        assert [each[0] for each in await careful.until(Type.PONG, 2)] == [Type.OK, Type.PONG]
    for each in listeners:
        assert await each.drain(20, "the test is over") == 0
    await authenticator.close()
