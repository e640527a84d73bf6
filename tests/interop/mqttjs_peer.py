"""MQTT.js in Node, over TCP or WebSocket: one process, mqttjs_peer.cjs, has all the clients of a file.

`make test` installs the library into build/interop with npm, by the lock file beside this one.
"""

import asyncio
import base64
import itertools
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.interop.peer import PLAIN, Message, Options, Peer, Refused, Said, Wanted, soon
from tests.require import ROOT, command

LIBRARY = ROOT / "build" / "interop" / "node_modules" / "mqtt"
SCRIPT = Path(__file__).with_suffix(".cjs")
CLOSE_SECONDS = 10.0


class Failed(Exception):
    """A call failed. `code`: a number of MQTT's, a text of Node's, or None."""

    def __init__(self, code: int | str | None, text: str) -> None:
        super().__init__(text)
        self.code = code


class Node:
    """The process. Its output is read by a thread, which passes it on to the loop of whoever waits for it."""

    def __init__(self) -> None:
        node = command("node", package="nodejs")
        if not LIBRARY.is_dir():
            pytest.skip("needs mqtt.js in build/interop: `make test` installs it where there is npm")
        self.process = subprocess.Popen(
            [node, str(SCRIPT), str(LIBRARY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._peers: dict[int, MqttjsPeer] = {}
        self._reader = threading.Thread(target=self._read, name="output of node", daemon=True)
        self._reader.start()

    def enter(self, peer: "MqttjsPeer") -> int:
        number = next(self._numbers)
        self._peers[number] = peer
        return number

    async def ask(self, client: int, do: str, **arguments: Any) -> Any:
        """Raises Failed."""
        number = next(self._numbers)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "client": client, "do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        return await soon(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(CLOSE_SECONDS)
        finally:
            self.process.kill()
            self._reader.join(CLOSE_SECONDS)
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if "id" in said:
                answer = self._waiting.pop(said["id"])
                if not answer.get_loop().is_closed():
                    answer.get_loop().call_soon_threadsafe(self._settle, answer, said)
            else:
                peer = self._peers[said["client"]]
                if not peer.loop.is_closed():
                    peer.loop.call_soon_threadsafe(peer.tell, said)

    @staticmethod
    def _settle(answer: "asyncio.Future[Any]", said: dict[str, Any]) -> None:
        if answer.done():
            return
        if "error" in said:
            answer.set_exception(Failed(said["code"], said["error"]))
        else:
            answer.set_result(said["value"])


def written(said: Said, **more: Any) -> dict[str, Any]:
    """What is said, as MQTT.js has it. A name that occurs twice has a list."""
    user: dict[str, list[str]] = {}
    for name, value in said.user:
        user.setdefault(name, []).append(value)
    values = {
        "userProperties": user or None, "contentType": said.content_type, "responseTopic": said.response_topic,
        "correlationData": None if said.correlation is None else base64.b64encode(said.correlation).decode(),
        "payloadFormatIndicator": said.is_text, "messageExpiryInterval": said.expiry, **more,
    }
    return {name: value for name, value in values.items() if value is not None}


def read(told: dict[str, Any]) -> Message:
    """A message as mqttjs_peer.cjs tells it."""
    properties = told["properties"]
    user = [
        (name, value)
        for name, values in properties.get("userProperties", {}).items()
        for value in (values if isinstance(values, list) else [values])
    ]
    said = Said(
        user=tuple(user), content_type=properties.get("contentType"), response_topic=properties.get("responseTopic"),
        correlation=None if told["correlation"] is None else base64.b64decode(told["correlation"]),
        is_text=properties.get("payloadFormatIndicator"), expiry=properties.get("messageExpiryInterval"),
    )
    found = properties.get("subscriptionIdentifier", [])
    identifiers = tuple(found) if isinstance(found, list) else (found,)
    return Message(told["topic"], base64.b64decode(told["payload"]), told["qos"], told["retain"], said, identifiers)


class MqttjsPeer(Peer):
    node: Node  # set by the test file's fixture

    def __post_init__(self) -> None:
        super().__post_init__()
        self.connections: asyncio.Queue[bool] = asyncio.Queue()  # whether each found a session
        self._number = self.node.enter(self)

    async def connect(self, wanted: Wanted) -> bool | None:
        return bool((await self.connect_with(wanted))["present"])

    async def connect_with(self, wanted: Wanted, **more: Any) -> dict[str, Any]:
        """`more`: options of mqtt.connect. Returns what CONNACK said."""
        five = self.version == 5
        options: dict[str, Any] = {
            "clientId": wanted.client_id, "clean": wanted.clean, "keepalive": wanted.keep_alive,
            "protocolVersion": 5 if five else 4, "username": wanted.user, "password": wanted.password, **more,
        }
        if five:
            asked = {
                "sessionExpiryInterval": wanted.expiry or None, "receiveMaximum": wanted.receive_max,
                "maximumPacketSize": wanted.packet_max, "topicAliasMaximum": wanted.alias_max,
            }
            options["properties"] = {name: value for name, value in asked.items() if value is not None}
        if (will := wanted.will) is not None:
            options["will"] = {
                "topic": will.topic, "payload": base64.b64encode(will.payload).decode(), "qos": will.qos,
                "retain": will.retain,
            }
            if five:
                options["will"]["properties"] = written(will.said, willDelayInterval=wanted.will_delay or None)
        given = {name: value for name, value in options.items() if value is not None}
        url = f"{'ws' if self.endpoint.websocket else 'mqtt'}://127.0.0.1:{self.endpoint.port}"
        try:
            told: dict[str, Any] = await self._ask("connect", url=url, options=given)
        except Failed as error:
            if not isinstance(error.code, int):
                raise
            raise Refused(error.code) from None
        return told

    async def subscribe(self, filter: str, qos: int = 0, options: Options = PLAIN) -> int:
        asked: dict[str, Any] = {"qos": qos}
        if self.version == 5:
            asked |= {"nl": options.no_local, "rap": options.retain_as_published, "rh": options.retain_handling}
            if options.identifier is not None:
                asked["properties"] = {"subscriptionIdentifier": options.identifier}
        return int(await self._ask("subscribe", filter=filter, options=asked))

    async def unsubscribe(self, filter: str) -> None:
        await self._ask("unsubscribe", filter=filter)

    async def publish(self, *messages: Message) -> None:
        five = self.version == 5
        told = [
            {
                "topic": each.topic, "payload": base64.b64encode(each.payload).decode(), "qos": each.qos,
                "retain": each.retain, **({"properties": written(each.said)} if five else {}),
            }
            for each in messages
        ]
        await self._ask("publish", messages=told)

    async def disconnect(self) -> None:
        await self._ask("disconnect")

    async def cut(self) -> None:
        await self._ask("cut")

    def tell(self, said: dict[str, Any]) -> None:
        """An event."""
        if said["event"] == "message":
            self.inbox.put_nowait(read(said))
        elif said["event"] == "connected":
            self.connections.put_nowait(said["present"])
        else:
            self.has_closed(said["reason"])

    async def _ask(self, do: str, **arguments: Any) -> Any:
        return await self.node.ask(self._number, do, **arguments)
