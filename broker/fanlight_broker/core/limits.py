"""Every limit of the broker, in one place: its unit, its default and the reason for it.

The settings file, the environment, the flags, `--help` and docs/configuration.md are all generated from these
annotations, so a limit is described once. Nothing here is enforced: the owner of a resource enforces its limit.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fanlight_broker.core.setting import Ge, Le, Reason, Unit


class SlowPolicy(StrEnum):
    """What happens to a MESSAGE for a connection whose outbox is full."""

    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    DISCONNECT = "disconnect"
    PAUSE = "pause"


class QueuePolicy(StrEnum):
    """Which message is dropped when the queue of a session or of a queue group is full."""

    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"


class SubscribePartly(StrEnum):
    """What happens to a subscription to a filter of which permissions deny some topics."""

    FILTER = "filter"  # it is in force, and does not get what is published on these
    REFUSE = "refuse"


class Durability(StrEnum):
    """When archived messages are synced to the disk."""

    NONE = "none"  # when its segment is closed
    INTERVAL = "interval"
    BATCH = "batch"


class StoreDurability(StrEnum):
    """What an acknowledgement waits for, of what the store is to keep."""

    SYNCED = "synced"  # the disk has it
    WRITTEN = "written"  # the operating system has it: lost with the machine, not with the process
    MEMORY = "memory"  # nothing


KIB = 1024
MIB = 1024 * KIB
TOPIC_WORDS_CEILING = 1_024  # what the matcher is designed for; the work per topic grows with its words


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one broker. Immutable: a reload creates a new object."""

    # What one peer may send.
    frame_bytes_max: Annotated[
        int, Ge(1 * KIB), Le(64 * MIB), Unit("bytes"),
        Reason("largest frame accepted; 1 MiB is NATS's default, and bounds what one peer can make the broker hold"),
    ] = 1 * MIB
    handshake_frame_bytes_max: Annotated[
        int, Ge(256), Le(64 * KIB), Unit("bytes"),
        Reason(
            "largest native frame before the handshake is complete; a client of any protocol may send as much "
            "before it is admitted, without using handshakes_bytes_max"
        ),
    ] = 4 * KIB
    handshakes_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("bytes received from all clients not admitted yet, above handshake_frame_bytes_max each; 256 CONNECT "
               "packets of the largest size. Past it, a client that needs more is refused"),
    ] = 16 * MIB
    inboxes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "incomplete frames and topic aliases of all connections together; 256 frames of the largest size. "
            "Past it, a connection that needs more than 16 KiB is closed"
        ),
    ] = 256 * MIB
    tls_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("buffers of all TLS connections together: 64 KiB at the handshake, then 28 KiB for a quiet one and up "
               "to 64 KiB for one that has sent or got much at once; 52 to 692 KiB without the poller (tcp) and by "
               "WebSocket. Past it, new TLS connections are refused, and one that needs more is closed"),
    ] = 2048 * MIB
    topic_bytes_max: Annotated[
        int, Ge(1), Le(65_535), Unit("bytes"), Reason("length of a topic or filter; 65,535 is MQTT's own bound")
    ] = 65_535
    topic_words_max: Annotated[
        int, Ge(1), Le(TOPIC_WORDS_CEILING), Unit("words"),
        Reason("words of a topic or filter; topics in practice have fewer than 12"),
    ] = 128
    subscribe_partly: Annotated[
        SubscribePartly, Unit("policy"),
        Reason(
            "a subscription to a filter of which permissions deny some topics: in force without these, or refused; "
            "members of queue groups and consumers are refused in both cases"
        ),
    ] = SubscribePartly.FILTER
    filter_hashes_max: Annotated[
        int, Ge(1), Le(16), Unit("words"),
        Reason("number of # in one filter; the words between two of them are searched for in each new topic"),
    ] = 3
    searching_filters_per_client_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("subscriptions"),
        Reason("subscriptions of one connection whose filter has several #; real clients have a few"),
    ] = 1_000
    searching_filters_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("subscriptions"),
        Reason("all subscriptions whose filter has several #: each takes up to 3.5 µs of a new topic of 120 words"),
    ] = 5_000

    # Connections, and how long they may be idle.
    connections_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("connections"),
        Reason("all connections together; each needs a file descriptor and about 6 KiB"),
    ] = 20_000
    connections_per_address_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("connections"),
        Reason("connections from one address, so that one host cannot use up all; high because of proxies and NAT"),
    ] = 15_000
    handshake_seconds_max: Annotated[
        float, Ge(0.1), Le(300), Unit("seconds"),
        Reason("time to complete the handshake; bounds how long a slow-loris attack holds a connection"),
    ] = 5.0
    logins_percent: Annotated[
        int, Ge(1), Le(100), Unit("percent"),
        Reason("of the loop's time, for logins from one address while it passes others' messages; 100: all of it"),
    ] = 3
    subscribing_percent: Annotated[
        int, Ge(1), Le(100), Unit("percent"),
        Reason("of the loop's time, for subscriptions of a user or address while it passes others' messages; 100: all"),
    ] = 3
    connections_without_login_per_second_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("connections"),
        Reason(
            "connections of one address that end before anybody logs in, a second; above it its new ones are closed "
            "when they are accepted, 30 s at most, as each takes as long as a hundred messages; 0: as many as come"
        ),
    ] = 250
    refusals_per_second_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("requests"),
        Reason(
            "requests of one user or address that are refused, a second; above it its connections are not read from "
            "for a while, as a refusal takes as long as a hundred messages; 0: as many as there are"
        ),
    ] = 250
    idle_seconds_max: Annotated[
        float, Ge(0), Le(86_400), Unit("seconds"),
        Reason(
            "idle time after which a half-open connection is closed (it is pinged after half of it); 0 disables "
            "this"
        ),
    ] = 120.0

    # What one client may use.
    subscriptions_per_client_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("subscriptions"),
        Reason("subscriptions of one connection; bridges have 100,000 and more"),
    ] = 250_000
    subscriptions_max: Annotated[
        int, Ge(1), Le(100_000_000), Unit("subscriptions"),
        Reason("all subscriptions together, at a few hundred bytes each"),
    ] = 5_000_000
    subscriptions_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("memory of all subscriptions together, with the index of their filters: about 400 bytes each")
    ] = 4096 * MIB
    pending_messages_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("messages"),
        Reason("messages kept for one subscription that is out of credit; further messages are dropped and counted"),
    ] = 1_000
    outbox_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * MIB), Unit("bytes"),
        Reason("unsent bytes of one connection before its slow policy applies; 8 MiB is 0.1 s at 80 MB/s"),
    ] = 8 * MIB
    outboxes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("unsent bytes of all connections together; past it every slow policy applies early, except to the first "
               "64 KiB of each connection"),
    ] = 1024 * MIB
    control_bytes_max: Annotated[
        int, Ge(4 * KIB), Le(64 * MIB), Unit("bytes"),
        Reason("unsent answers and errors of one connection; past it the broker stops reading from that connection"),
    ] = 64 * KIB

    # Slow consumers and back-pressure.
    slow_policy: Annotated[
        SlowPolicy, Unit("policy"),
        Reason(
            "slow policy of a connection that chooses none in its handshake; only the slow connection loses "
            "messages"
        ),
    ] = SlowPolicy.DROP_NEWEST
    burst_seconds_max: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason(
            "total time within burst_window_seconds that publishers wait for a full outbox before its policy "
            "applies"
        ),
    ] = 0.1
    burst_window_seconds: Annotated[
        float, Ge(0.1), Le(86_400), Unit("seconds"),
        Reason("burst_seconds_max is available again after this long without a hold: at most 1 % of the time"),
    ] = 10.0
    pause_allowed: Annotated[
        bool, Unit("switch"),
        Reason("whether clients may choose the policy pause; if not, they get slow_policy, which WELCOME reports"),
    ] = False
    pause_seconds_max: Annotated[
        float, Ge(0.05), Le(3600), Unit("seconds"),
        Reason(
            "as burst_seconds_max, for the policy pause; a consumer past it, or that leaves answers unread as "
            "long, is disconnected"
        ),
    ] = 10.0
    pause_window_seconds: Annotated[
        float, Ge(0.1), Le(86_400), Unit("seconds"),
        Reason("pause_seconds_max is available again after this long without a hold: at most one sixth of the time"),
    ] = 60.0

    linger_seconds_max: Annotated[
        float, Ge(0.05), Le(300), Unit("seconds"),
        Reason("time for the peer of a connection that is being closed to read what is still unsent"),
    ] = 5.0

    # Sessions that outlive their connection, and messages that are kept.
    sessions_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("sessions"),
        Reason("MQTT sessions, connected and disconnected, about 3 KiB each"),
    ] = 200_000
    sessions_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "memory of all sessions together, without their messages and subscriptions: 200,000 with a will of "
            "2 KiB each. Past it, a client that needs a new session is refused"
        )
    ] = 1024 * MIB
    name_bytes_max: Annotated[
        int, Ge(23), Le(65_535), Unit("bytes"),
        Reason("length of a client identifier, and of a user name; MQTT requires 23, cloud services allow up to 256")
    ] = 1_024
    session_seconds_max: Annotated[
        float, Ge(0), Le(10 * 365 * 86_400), Unit("seconds"),
        Reason("longest time a session is kept for a disconnected client, whatever it asks for; a week of holidays"),
    ] = 7 * 86_400.0
    inflight_messages_max: Annotated[
        int, Ge(1), Le(65_535), Unit("messages"),
        Reason("unacknowledged messages sent to one client, unless it asks for fewer: 50,000 a second at 20 ms"),
    ] = 1_000
    unreleased_messages_max: Annotated[
        int, Ge(1), Le(65_535), Unit("messages"),
        Reason(
            "messages received from one client with QoS 2 and not released; CONNACK announces it as Receive "
            "Maximum"
        ),
    ] = 10_000
    namespaces_max: Annotated[
        int, Ge(0), Le(100_000), Unit("namespaces"),
        Reason(
            "namespaces beside the root that somebody is in, or that something is kept in, about 50 KiB each; a "
            "client of one more is refused"
        ),
    ] = 1_000
    queue_messages_max: Annotated[
        int, Ge(1), Le(100_000_000), Unit("messages"),
        Reason("messages that wait for one session or queue group; mosquitto's 1,000 fill up in a short interruption"),
    ] = 10_000
    queue_bytes_max: Annotated[
        int, Ge(4 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("memory of these messages; a frame of the largest size fits several times"),
    ] = 16 * MIB
    queue_policy: Annotated[
        QueuePolicy, Unit("policy"), Reason(
            "which message is dropped when such a queue is full; by default what it has is kept"
        )
    ] = QueuePolicy.DROP_NEWEST
    queues_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("queues"),
        Reason("named queues, about 4 KiB each; a service has a few. 0 allows none"),
    ] = 10_000
    work_queue_messages_max: Annotated[
        int, Ge(1), Le(1_000_000_000), Unit("messages"),
        Reason("messages that wait in one named queue, unless it asks for fewer; its consumers may be away for hours"),
    ] = 1_000_000
    work_queue_bytes_max: Annotated[
        int, Ge(4 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("memory of these messages, unless the queue asks for less; a million of 256 bytes"),
    ] = 512 * MIB
    queue_memory_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "memory of what waits packed in a queue without a journal; with `data` what comes then is on the disk, "
            "also when half of stored_bytes_max is in use"
        ),
    ] = 32 * MIB
    prefetch_max: Annotated[
        int, Ge(1), Le(65_535), Unit("messages"),
        Reason("unacknowledged deliveries of one consumer of a named queue, unless it asks for fewer"),
    ] = 10_000
    retained_messages_max: Annotated[
        int, Ge(0), Le(100_000_000), Unit("messages"),
        Reason(
            "retained messages; one more is delivered, counted and not retained; 0 retains none, and CONNACK "
            "says so"
        ),
    ] = 2_000_000
    retained_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("memory of all retained messages; past it as above, and the topic's retained message is cleared"),
    ] = 1024 * MIB
    delayed_messages_max: Annotated[
        int, Ge(0), Le(100_000_000), Unit("messages"),
        Reason("messages that wait for the time that their publisher has set; one more is refused. 0 allows none"),
    ] = 1_000_000
    delayed_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "bytes of these messages, in the store or without one in memory: a million of 256 bytes take 700 MB; past "
            "it one more is refused"
        ),
    ] = 1024 * MIB
    delay_seconds_max: Annotated[
        float, Ge(0), Le(10 * 365 * 86_400), Unit("seconds"),
        Reason("longest delay of a message; a reminder for the next month. A longer one is refused"),
    ] = 32 * 86_400.0
    rules_max: Annotated[
        int, Ge(0), Le(100_000), Unit("rules"),
        Reason(
            "routing rules in force; a file with more is refused. SIGHUP stops everything for about 0.2 ms a rule"
        ),
    ] = 1_000
    permissions_max: Annotated[
        int, Ge(0), Le(10_000_000), Unit("filters"),
        Reason("filters of all rules of permissions, about 300 bytes each; a file with more is refused"),
    ] = 1_000_000
    stored_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "all messages in queues, in flight, retained and delayed, each counted once; past it every queue counts "
            "as full"
        ),
    ] = 2048 * MIB

    # The broker's own topics.
    sys_interval_seconds: Annotated[
        float, Ge(0), Le(86_400), Unit("seconds"),
        Reason("time between two publications of the $SYS topics that have changed; 0 disables them"),
    ] = 10.0

    # Caches.
    routes_max: Annotated[
        int, Ge(16), Le(100_000_000), Unit("routes"),
        Reason(
            "topics whose subscribers are cached; past it a topic that is used again and again takes the place of one "
            "that is not, and the others are worked out for each message"
        ),
    ] = 1_000_000

    routes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("memory of these routes: each takes 256 bytes, its topic, and 8 bytes for each subscription"),
    ] = 256 * MIB

    # How much of a pot one principal may use: an authenticated user, or an address where user names prove nothing.
    share_percent: Annotated[
        int, Ge(1), Le(100), Unit("percent"),
        Reason(
            "how much of what others leave of a pot one user may use (one address, where users are anonymous): three "
            "quarters for a single user, and some is always left for the next. 100 suits a broker with one user"
        ),
    ] = 75
    sessions_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason(
            "share of sessions_max and sessions_bytes_max; past it the sessions disconnected longest are ended. "
            "0: as share_percent"
        ),
    ] = 0
    subscriptions_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason(
            "share of subscriptions_max, subscriptions_bytes_max and searching_filters_max, for all clients of a user "
            "together; one more is refused. 0: as share_percent"
        ),
    ] = 0
    retained_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of retained_messages_max and retained_bytes_max; one more is not retained. 0: as share_percent"),
    ] = 0
    stored_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of stored_bytes_max; past it only the user's own queues count as full. 0: as share_percent"),
    ] = 0
    marks_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason(
            "share of marks_max; past it the user's least recently used producer is forgotten. 0: as "
            "share_percent"
        ),
    ] = 0
    queues_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of queues_max; one more is refused. 0: as share_percent"),
    ] = 0
    delayed_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of delayed_messages_max and delayed_bytes_max; one more is refused. 0: as share_percent"),
    ] = 0
    unkept_seconds_max: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason(
            "time an MQTT 3.1.1 publisher waits when no queue has room for its message; then it is disconnected, "
            "because its version cannot report that (5.0 can: 0x97)"
        ),
    ] = 10.0

    # Deduplication.
    marks_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("producers"),
        Reason(
            "producers whose high-water mark is kept for deduplication, about 500 bytes each; past it the least "
            "recently used is forgotten"
        ),
    ] = 10_000
    marks_jump_max: Annotated[
        int, Ge(1), Le(2**63), Unit("messages"),
        Reason("by how much a second connection may advance the mark of a producer that another connection uses; the "
               "same in batches; a retry begins at most one above"),
    ] = 1_000_000

    # The archive.
    archive_buffer_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("messages on their way to the archive; at 100 MB/s the disk may stall for half a second"),
    ] = 64 * MIB
    archive_batch_messages_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("messages"),
        Reason(
            "messages in one batch; smaller batches cost more per message, larger ones more to read a single "
            "message"
        ),
    ] = 4_096
    archive_batch_seconds_max: Annotated[
        float, Ge(0.001), Le(60), Unit("seconds"),
        Reason("longest time a message waits for its batch to fill"),
    ] = 0.1
    archive_segment_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("size at which a segment is closed; retention removes whole segments"),
    ] = 64 * MIB
    archive_segment_seconds_max: Annotated[
        float, Ge(1), Le(86_400), Unit("seconds"),
        Reason("age at which a segment is closed, so that a quiet archive has closed segments too"),
    ] = 60.0
    archive_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * 1024 * MIB), Unit("bytes"),
        Reason(
            "disk space of all segments and their indexes; past it the oldest are removed. 0 keeps all of them until "
            "the disk is full"
        ),
    ] = 10 * 1024 * MIB
    archive_replays_max: Annotated[
        int, Ge(0), Le(10_000), Unit("replays"),
        Reason("replays that read at the same time, a few MiB each; those that are live do not count"),
    ] = 64
    archive_seconds_max: Annotated[
        float, Ge(0), Le(100 * 365 * 86_400), Unit("seconds"),
        Reason("age of the messages at which a segment is removed; 0 keeps them as long as there is room"),
    ] = 0.0

    archive_hold_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * 1024 * MIB), Unit("bytes"),
        Reason("segments kept for a hold alone; past it the oldest are removed all the same; 0 ignores holds"),
    ] = 10 * 1024 * MIB
    archive_hold_seconds_max: Annotated[
        float, Ge(0), Le(100 * 365 * 86_400), Unit("seconds"),
        Reason("age at which a hold that nobody renewed is ignored; 0: never"),
    ] = 7 * 86_400.0

    # Stopping.
    grace_seconds: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason("time to flush what clients have not read yet after SIGTERM; Docker kills the process after 10 s"),
    ] = 8.0

    @property
    def retains(self) -> bool:
        """Are messages retained at all?"""
        return self.retained_messages_max > 0 and self.retained_bytes_max > 0
