"""What users do with an MQTT client, the same for every library: a test class for each subclasses these.

    class TestPaho5(Conversation5):
        kind, version = PahoPeer, 5

Paragraphs are those of MQTT 5.0; 3.1.1 has the same rules unless it says otherwise.
"""

from collections import Counter

import pytest

from tests.conftest import TestBroker
from tests.interop.conftest import Meeting, endpoint_of
from tests.interop.peer import Message, Options, Peer, Refused, Said, Wanted, numbered, numbers, soon

COUNT = 100
DAY = 86_400


class Conversation:
    """With 3.1.1 and 5.0."""

    kind: type[Peer]
    version: int
    websocket = False

    @property
    def five(self) -> bool:
        return self.version == 5

    @pytest.mark.parametrize("qos", [0, 1, 2])
    async def test_messages_of_every_qos_arrive_once_and_in_order(self, meet: Meeting, qos: int) -> None:  # 4.6
        reader, writer = await meet("reader"), await meet("writer")
        assert await reader.subscribe(f"{meet.name}/+", qos) == qos
        await writer.publish(*numbered(f"{meet.name}/a", COUNT, qos), Message(f"{meet.name}/end", b"", qos))
        came = await reader.until(f"{meet.name}/end")
        assert numbers(came) == list(range(COUNT))
        assert {message.qos for message in came} == {qos}
        assert {message.retain for message in came} == {False}

    @pytest.mark.parametrize(("published", "granted"), [(2, 1), (1, 0), (0, 2)])
    async def test_a_message_comes_at_the_lower_of_both_qos(  # 3.8.4
        self, meet: Meeting, published: int, granted: int
    ) -> None:
        reader = await meet("reader")
        assert await reader.subscribe(meet.name, granted) == granted
        await meet.publish(Message(meet.name, b"x", published))
        assert (await reader.message()).qos == min(published, granted)

    async def test_wildcards_get_what_they_match_and_nothing_else(self, meet: Meeting) -> None:  # 4.7.1
        reader = await meet("reader")
        name = meet.name
        for filter in (f"{name}/+/AAPL", f"{name}/deep/#", f"{name}/end"):
            await reader.subscribe(filter, 1)
        topics = ["x/AAPL", "x/MSFT", "x/y/AAPL", "/AAPL", "AAPL", "deep", "deep/er", "deep/er/still", "deeper", "end"]
        await meet.publish(*(Message(f"{name}/{topic}", b"", 1) for topic in topics))
        came = [message.topic.removeprefix(f"{name}/") for message in await reader.until(f"{name}/end")]
        assert came == ["x/AAPL", "/AAPL", "deep", "deep/er", "deep/er/still"]

    async def test_a_wildcard_at_the_front_does_not_get_what_begins_with_a_dollar(self, meet: Meeting) -> None:  # 4.7.2
        plain, dollar = await meet("plain"), await meet("dollar")
        await plain.subscribe(f"+/{meet.name}/#")
        await dollar.subscribe(f"$mine/{meet.name}/#")
        await meet.publish(Message(f"$mine/{meet.name}/a", b"1"), Message(f"its/{meet.name}/a", b"2"))
        assert (await dollar.message()).payload == b"1"
        assert (await plain.message()).payload == b"2"

    async def test_overlapping_filters_give_one_copy_at_the_highest_qos(self, meet: Meeting) -> None:  # 3.3.4
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 0)
        await reader.subscribe(f"{meet.name}/a", 2)
        await reader.subscribe(f"{meet.name}/+", 1)
        await reader.subscribe(f"{meet.name}/end", 2)
        await meet.publish(Message(f"{meet.name}/a", b"", 2), Message(f"{meet.name}/end", b"", 2))
        came = await reader.until(f"{meet.name}/end")
        assert [message.qos for message in came] == [2]

    async def test_who_unsubscribes_gets_no_more(self, meet: Meeting) -> None:  # 3.10.4
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/a", 1)
        await reader.subscribe(f"{meet.name}/end", 1)
        await reader.unsubscribe(f"{meet.name}/a")
        await meet.publish(Message(f"{meet.name}/a", b"", 1), Message(f"{meet.name}/end", b"", 1))
        assert await reader.until(f"{meet.name}/end") == []

    async def test_a_retained_message_waits_for_who_comes_later_until_it_is_cleared(self, meet: Meeting) -> None:
        topic = f"{meet.name}/state"  # 3.3.1.3
        await meet.publish(Message(topic, b"old", 1, True), Message(topic, b"new", 1, True))
        first = await meet("first")
        await first.subscribe(f"{meet.name}/#", 1)
        came = await first.message()
        assert (came.topic, came.payload, came.retain) == (topic, b"new", True)
        await meet.publish(Message(topic, b"newer", 1, True), Message(topic, b"", 1, True))
        later = await first.messages(2)
        assert [(message.payload, message.retain) for message in later] == [(b"newer", False), (b"", False)]

        second = await meet("second")
        await second.subscribe(f"{meet.name}/#", 1)
        await meet.publish(Message(f"{meet.name}/end", b"", 1))
        assert await second.until(f"{meet.name}/end") == []

    async def test_a_will_is_published_when_the_connection_breaks(self, meet: Meeting) -> None:  # 3.1.2.5
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 2)
        mortal = await meet("mortal", will=Message(f"{meet.name}/will", b"gone", 1, True))
        await mortal.cut()
        came = await reader.message()
        assert (came.topic, came.payload, came.qos, came.retain) == (f"{meet.name}/will", b"gone", 1, False)
        late = await meet("late")
        await late.subscribe(f"{meet.name}/#", 2)
        assert (await late.message()).retain
        await meet.publish(Message(f"{meet.name}/will", b"", 1, True))

    async def test_there_is_no_will_after_a_disconnect(self, meet: Meeting) -> None:  # 3.14.4
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 1)
        polite = await meet("polite", will=Message(f"{meet.name}/will", b"gone", 1))
        await polite.disconnect()
        await meet.publish(Message(f"{meet.name}/end", b"", 1))
        assert await reader.until(f"{meet.name}/end") == []

    @pytest.mark.parametrize("ends", ["disconnect", "cut"])
    async def test_a_session_goes_on_with_what_came_meanwhile(self, meet: Meeting, ends: str) -> None:  # 4.1, 4.4
        reader = await meet("reader", clean=False, expiry=DAY)
        await reader.subscribe(f"{meet.name}/+", 2)
        await getattr(reader, ends)()
        for qos in (1, 2):
            await meet.publish(*numbered(f"{meet.name}/{qos}", COUNT, qos))
        await meet.publish(Message(f"{meet.name}/end", b"", 2))
        again = await meet("reader", clean=False, expiry=DAY, present=True)
        came = await again.until(f"{meet.name}/end")
        assert [message.qos for message in came] == [1] * COUNT + [2] * COUNT
        assert numbers(came) == [*range(COUNT), *range(COUNT)]
        # And no subscribing anew is needed for what comes now.
        await meet.publish(Message(f"{meet.name}/now", b"", 2))
        assert (await again.message()).topic == f"{meet.name}/now"

    async def test_a_clean_start_ends_the_session_before(self, meet: Meeting) -> None:  # 3.1.2.4
        reader = await meet("reader", clean=False, expiry=DAY)
        await reader.subscribe(f"{meet.name}/a", 1)
        await reader.disconnect()
        await meet.publish(Message(f"{meet.name}/a", b"", 1))
        again = await meet("reader", clean=True)
        await again.subscribe(f"{meet.name}/end", 1)
        await meet.publish(Message(f"{meet.name}/a", b"", 1), Message(f"{meet.name}/end", b"", 1))
        assert await again.until(f"{meet.name}/end") == []

    @pytest.mark.parametrize("qos", [0, 1])
    async def test_a_shared_subscription_gives_each_message_to_one_member(self, meet: Meeting, qos: int) -> None:
        members = [await meet("one"), await meet("two")]  # 4.8.2
        for member in members:
            assert await member.subscribe(f"$share/crew/{meet.name}/+", qos) == qos
            await member.subscribe(f"{meet.name}/end/+", qos)
        await meet.publish(*numbered(f"{meet.name}/job", COUNT, qos), Message(f"{meet.name}/end/it", b"", qos))
        shares = [numbers(await member.until(f"{meet.name}/end/it")) for member in members]
        assert Counter(shares[0]) + Counter(shares[1]) == Counter(range(COUNT))
        assert all(share == sorted(share) for share in shares)
        assert all(len(share) >= COUNT // 4 for share in shares)

    @pytest.mark.parametrize("qos", [0, 1, 2])
    async def test_large_payloads_arrive_whole(self, meet: Meeting, qos: int) -> None:
        reader = await meet("reader")
        await reader.subscribe(meet.name, qos)
        payloads = [bytes(range(256)) * 1024, b"", b"\xff" * 100_000]
        await meet.publish(*(Message(meet.name, payload, qos) for payload in payloads))
        assert [message.payload for message in await reader.messages(3)] == payloads

    async def test_many_topics_keep_their_order(self, meet: Meeting) -> None:  # 4.6
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 1)
        topics = [f"{meet.name}/{number % 7}/{number}" for number in range(500)]
        await meet.publish(*(Message(topic, b"", 1) for topic in topics), Message(f"{meet.name}/end", b"", 1))
        assert [message.topic for message in await reader.until(f"{meet.name}/end")] == topics

    async def test_a_second_connection_takes_the_session_over(self, meet: Meeting) -> None:  # 3.1.4
        first = await meet("one", clean=False, expiry=DAY)
        await first.subscribe(meet.name, 1)
        second = await meet("one", clean=False, expiry=DAY, present=True)
        assert await soon(first.closed) == (0x8E if self.five else None)  # Session taken over
        await meet.publish(Message(meet.name, b"", 1))
        assert (await second.message()).topic == meet.name

    async def test_passwords_are_asked_for(self, meet: Meeting, guarded_broker: TestBroker) -> None:  # 3.1.3.5
        endpoint = endpoint_of(guarded_broker, websocket=self.websocket)
        for asked in ({}, {"user": "alice", "password": "Sesame"}):
            with pytest.raises(Refused) as refused:
                await meet.stranger(endpoint).connect(meet.wanted("wrong", **asked))
            assert refused.value.code in ((0x86, 0x87) if self.five else (4, 5, 0x86, 0x87))
        right = meet.stranger(endpoint)
        await right.connect(meet.wanted("right", user="alice", password="sesame"))
        await right.subscribe("a", 1)
        await right.publish(Message("a", b"in", 1))
        assert (await right.message()).payload == b"in"
        await right.disconnect()


class Conversation5(Conversation):
    """With 5.0 alone."""

    version = 5

    @pytest.mark.parametrize("qos", [0, 1, 2])
    async def test_properties_go_through_unchanged(self, meet: Meeting, qos: int) -> None:  # 3.3.2.3
        said = Said(
            user=(("a", "1"), ("a", "2"), ("b", "ü 試")), content_type="text/plain",
            response_topic=f"{meet.name}/answer", correlation=b"\x00\xff", is_text=True,
        )
        reader = await meet("reader")
        await reader.subscribe(meet.name, qos)
        await meet.publish(Message(meet.name, "é".encode(), qos, said=said), Message(meet.name, b"plain", qos))
        came = await reader.messages(2)
        assert [message.said for message in came] == [said, Said()]

    async def test_a_requester_gets_the_response_to_its_own_request(self, meet: Meeting) -> None:  # 4.10
        server, clients = await meet("server"), [await meet("one"), await meet("two")]
        await server.subscribe(f"{meet.name}/ask", 1)
        for number, client in enumerate(clients):
            await client.subscribe(f"{meet.name}/to/{number}", 1)
        for number, client in enumerate(clients):
            asks = Said(response_topic=f"{meet.name}/to/{number}", correlation=bytes([number]))
            await client.publish(Message(f"{meet.name}/ask", b"?", 1, said=asks))
            request = await server.message()
            assert request.said.response_topic is not None
            says = Said(correlation=request.said.correlation)
            await server.publish(Message(request.said.response_topic, b"!", 1, said=says))
            answer = await client.message()
            assert (answer.payload, answer.said.correlation) == (b"!", bytes([number]))

    async def test_what_is_left_of_a_messages_time_is_told(self, meet: Meeting) -> None:  # 3.3.2.3.3
        await meet.publish(Message(meet.name, b"x", 1, True, Said(expiry=1_000)))
        reader = await meet("reader")
        await reader.subscribe(meet.name, 1)
        left = (await reader.message()).said.expiry
        assert left is not None
        assert 900 < left <= 1_000
        await meet.publish(Message(meet.name, b"", 1, True))

    async def test_overlapping_filters_tell_all_their_identifiers(self, meet: Meeting) -> None:  # 3.3.4
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 1, Options(identifier=1))
        await reader.subscribe(f"{meet.name}/a", 1, Options(identifier=268_435_455))
        await reader.subscribe(f"{meet.name}/+", 1)
        await meet.publish(Message(f"{meet.name}/a", b"", 1), Message(f"{meet.name}/b/c", b"", 1))
        first, second = await reader.messages(2)
        assert set(first.identifiers) == {1, 268_435_455}
        assert second.identifiers == (1,)

    async def test_no_local_leaves_out_ones_own(self, meet: Meeting) -> None:  # 3.8.3.1
        peer, other = await meet("peer"), await meet("other")
        await peer.subscribe(meet.name, 1, Options(no_local=True))
        await peer.publish(Message(meet.name, b"own", 1))
        await other.publish(Message(meet.name, b"other's", 1))
        assert (await peer.message()).payload == b"other's"

    async def test_retain_as_published_keeps_the_flag(self, meet: Meeting) -> None:  # 3.8.3.1
        keeps, drops = await meet("keeps"), await meet("drops")
        await keeps.subscribe(meet.name, 1, Options(retain_as_published=True))
        await drops.subscribe(meet.name, 1)
        await meet.publish(Message(meet.name, b"x", 1, True), Message(meet.name, b"", 1, True))
        assert [message.retain for message in await keeps.messages(2)] == [True, True]
        assert [message.retain for message in await drops.messages(2)] == [False, False]

    async def test_retain_handling_says_whether_retained_messages_come(self, meet: Meeting) -> None:  # 3.8.3.1
        await meet.publish(Message(f"{meet.name}/kept", b"x", 1, True))
        peer = await meet("peer")
        came = []
        for handling in (2, 1, 0, 1, 2):
            # An identifier for each, so that a library does not take it for the same subscription.
            await peer.subscribe(f"{meet.name}/#", 1, Options(retain_handling=handling, identifier=handling + 1))
            await peer.publish(Message(f"{meet.name}/end", b"", 1))
            came.append(len(await peer.until(f"{meet.name}/end")))
        assert came == [0, 0, 1, 0, 0]
        await meet.publish(Message(f"{meet.name}/kept", b"", 1, True))

    async def test_a_message_that_is_too_large_for_a_client_is_left_out(self, meet: Meeting) -> None:  # 3.1.2.11.4
        small, large = await meet("small", packet_max=1_000), await meet("large")
        for peer in (small, large):
            await peer.subscribe(meet.name, 1)
        await meet.publish(Message(meet.name, bytes(2_000), 1), Message(meet.name, bytes(500), 1))
        assert [len(message.payload) for message in await large.messages(2)] == [2_000, 500]
        assert len((await small.message()).payload) == 500

    async def test_a_small_receive_maximum_slows_and_loses_nothing(self, meet: Meeting) -> None:  # 4.9
        reader = await meet("reader", receive_max=2)
        await reader.subscribe(meet.name, 2)
        await meet.publish(*numbered(meet.name, COUNT, 2))
        assert numbers(await reader.messages(COUNT)) == list(range(COUNT))

    async def test_topics_are_known_whether_a_client_takes_aliases_or_not(self, meet: Meeting) -> None:  # 3.3.2.3.4
        reader = await meet("reader", alias_max=3 if self.kind.takes_aliases else None)
        await reader.subscribe(f"{meet.name}/#", 1)
        topics = [f"{meet.name}/a/long/name/{number % 5}" for number in range(50)]
        await meet.publish(*(Message(topic, b"", number % 2) for number, topic in enumerate(topics)))
        assert Counter(message.topic for message in await reader.messages(50)) == Counter(topics)

    async def test_a_will_waits_for_its_delay_and_not_if_the_client_is_back(self, meet: Meeting) -> None:  # 3.1.3.2.2
        reader = await meet("reader")
        await reader.subscribe(f"{meet.name}/#", 1)
        back = await meet("back", expiry=DAY, will=Message(f"{meet.name}/back", b"", 1), will_delay=1)
        gone = await meet("gone", expiry=DAY, will=Message(f"{meet.name}/gone", b"", 1), will_delay=1)
        await back.cut()
        await gone.cut()
        await meet("back", clean=False, expiry=DAY, present=True)
        assert (await reader.message()).topic == f"{meet.name}/gone"
        await meet.publish(Message(f"{meet.name}/end", b"", 1))
        assert await reader.until(f"{meet.name}/end") == []

    async def test_a_client_without_an_identifier_is_given_one(self, meet: Meeting) -> None:  # 3.1.3.1
        nameless = meet.stranger()
        assert await nameless.connect(Wanted("")) in (False, None)
        await nameless.subscribe(meet.name, 1)
        await nameless.publish(Message(meet.name, b"x", 1))
        assert (await nameless.message()).payload == b"x"
