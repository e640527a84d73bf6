"""Every limit of the broker, in one place: its unit, its default and the reason for it.

The settings file, the environment, the flags, `--help` and docs/configuration.md are all made from these
annotations, so a limit is described once. Nothing here is enforced: whoever owns a resource enforces its limit.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge, Le


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a setting, as shown to people."""

    name: str


@dataclass(frozen=True, slots=True)
class Reason:
    """What a setting bounds, and why its default is what it is."""

    text: str


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



class Durability(StrEnum):
    """When what is archived is synced to the disk."""

    NONE = "none"  # when its segment is closed
    INTERVAL = "interval"
    BATCH = "batch"


KIB = 1024
MIB = 1024 * KIB
TOPIC_WORDS_CEILING = 1_024  # what the matcher is made for; the work per topic grows with its words


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one broker. Immutable: a reload makes a new one."""

    # What one peer may send.
    frame_bytes_max: Annotated[
        int, Ge(1 * KIB), Le(64 * MIB), Unit("bytes"),
        Reason("largest frame accepted; 1 MiB is what NATS accepts, and bounds what one peer can make us hold"),
    ] = 1 * MIB
    handshake_frame_bytes_max: Annotated[
        int, Ge(256), Le(64 * KIB), Unit("bytes"),
        Reason("largest native frame before the handshake is done; and what a client of any protocol may send before "
               "it is let in, without a share of handshakes_bytes_max"),
    ] = 4 * KIB
    handshakes_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("bytes of all clients that are not let in yet, above handshake_frame_bytes_max each; 256 of the largest "
               "CONNECT. Past it a client that needs more than that is refused"),
    ] = 16 * MIB
    inboxes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("unfinished frames and topic aliases of all connections together; 256 of the largest frames. Past it a "
               "connection that wants more than 16 KiB of it is closed"),
    ] = 256 * MIB
    tls_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("buffers of all TLS connections together: 52 KiB for a quiet one, up to 564 KiB for one that has sent "
               "much at once. Past it, new TLS connections are refused, and one that needs more is closed"),
    ] = 2048 * MIB
    topic_bytes_max: Annotated[
        int, Ge(1), Le(65_535), Unit("bytes"), Reason("length of a topic or filter; 65,535 is MQTT's own bound")
    ] = 65_535
    topic_words_max: Annotated[
        int, Ge(1), Le(TOPIC_WORDS_CEILING), Unit("words"),
        Reason("words of a topic or filter; real ones have under 12"),
    ] = 128
    filter_hashes_max: Annotated[
        int, Ge(1), Le(16), Unit("words"),
        Reason("how often # may stand in one filter; what lies between two is searched for in each new topic"),
    ] = 3
    searching_filters_per_client_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("subscriptions"),
        Reason("subscriptions of one connection whose filter has several #; real clients have a few"),
    ] = 1_000
    searching_filters_max: Annotated[
        int, Ge(0), Le(1_000_000), Unit("subscriptions"),
        Reason("all subscriptions whose filter has several #: each takes up to 3.5 µs of a new topic of 120 words"),
    ] = 5_000

    # Who may connect, and for how long in silence.
    connections_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("connections"),
        Reason("all connections together; the process needs that many file descriptors and some 6 KiB each"),
    ] = 20_000
    connections_per_address_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("connections"),
        Reason("connections from one address, so that one host cannot take them all; high, for proxies and NAT"),
    ] = 15_000
    handshake_seconds_max: Annotated[
        float, Ge(0.1), Le(300), Unit("seconds"),
        Reason("time to complete the handshake; a slow-loris holds a connection no longer than this"),
    ] = 5.0
    idle_seconds_max: Annotated[
        float, Ge(0), Le(86_400), Unit("seconds"),
        Reason("silence after which a half-open connection is closed (pinged at half of it); 0 never closes"),
    ] = 120.0

    # What one client may hold.
    subscriptions_per_client_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("subscriptions"),
        Reason("subscriptions of one connection; bridges hold 100,000 and more"),
    ] = 250_000
    subscriptions_max: Annotated[
        int, Ge(1), Le(100_000_000), Unit("subscriptions"),
        Reason("all subscriptions together, at a few hundred bytes each"),
    ] = 5_000_000
    subscriptions_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("what all subscriptions together may take, with the index of their filters: some 400 bytes each")
    ] = 4096 * MIB
    pending_messages_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("messages"),
        Reason("messages held for one subscription that is out of credit; further ones are dropped and counted"),
    ] = 1_000
    outbox_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * MIB), Unit("bytes"),
        Reason("unsent bytes of one connection, before its slow policy applies; 8 MiB is 0.1 s at 80 MB/s"),
    ] = 8 * MIB
    outboxes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("unsent bytes of all connections together; past it every slow policy applies early, but to the first "
               "64 KiB of each connection"),
    ] = 1024 * MIB
    control_bytes_max: Annotated[
        int, Ge(4 * KIB), Le(64 * MIB), Unit("bytes"),
        Reason("unsent answers and errors of a connection; one that asks more without reading is not read any further"),
    ] = 64 * KIB

    # What happens when somebody is slow.
    slow_policy: Annotated[
        SlowPolicy, Unit("policy"),
        Reason("slow policy of a connection that does not choose one in its handshake; the slow one alone loses"),
    ] = SlowPolicy.DROP_NEWEST
    burst_seconds_max: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason("total time, in burst_window_seconds, that publishers wait for a full outbox before its policy acts"),
    ] = 0.1
    burst_window_seconds: Annotated[
        float, Ge(0.1), Le(86_400), Unit("seconds"),
        Reason("burst_seconds_max is whole again when nobody was held for so long: 1 % of the time at most"),
    ] = 10.0
    pause_allowed: Annotated[
        bool, Unit("switch"),
        Reason("whether clients may ask for the policy pause; else they get slow_policy, and WELCOME says so"),
    ] = False
    pause_seconds_max: Annotated[
        float, Ge(0.05), Le(3600), Unit("seconds"),
        Reason("as burst_seconds_max, with the policy pause; past it, or with answers unread so long, disconnected"),
    ] = 10.0
    pause_window_seconds: Annotated[
        float, Ge(0.1), Le(86_400), Unit("seconds"),
        Reason("pause_seconds_max is whole again when nobody was held for so long: one sixth of the time at most"),
    ] = 60.0

    linger_seconds_max: Annotated[
        float, Ge(0.05), Le(300), Unit("seconds"),
        Reason("time a connection that is being closed may take to read what it was still to get"),
    ] = 5.0

    # Sessions that outlive their connection, and messages that are kept.
    sessions_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("sessions"),
        Reason("sessions with acknowledged delivery, of clients that are there and that are away, some 3 KiB each"),
    ] = 200_000
    sessions_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("what these sessions may take together, their messages and subscriptions not counted: 200,000 with a "
               "will of 2 KiB each. Past it a client that begins one is refused")
    ] = 1024 * MIB
    name_bytes_max: Annotated[
        int, Ge(23), Le(65_535), Unit("bytes"),
        Reason("length of a client identifier, and of a user name; MQTT asks for 23, the clouds allow up to 256")
    ] = 1_024
    session_seconds_max: Annotated[
        float, Ge(0), Le(10 * 365 * 86_400), Unit("seconds"),
        Reason("longest time a session is kept for a client that is away, whatever it asks for; a week of holidays"),
    ] = 7 * 86_400.0
    inflight_messages_max: Annotated[
        int, Ge(1), Le(65_535), Unit("messages"),
        Reason("unacknowledged messages sent to one client, if it does not want fewer: 50,000 a second at 20 ms"),
    ] = 1_000
    unreleased_messages_max: Annotated[
        int, Ge(1), Le(65_535), Unit("messages"),
        Reason("messages of one client received with QoS 2 and not released; CONNACK has it as the Receive Maximum"),
    ] = 10_000
    queue_messages_max: Annotated[
        int, Ge(1), Le(100_000_000), Unit("messages"),
        Reason("messages that wait for one session or queue group; mosquitto keeps 1,000, which a short break fills"),
    ] = 10_000
    queue_bytes_max: Annotated[
        int, Ge(4 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("what these messages may take; one of the largest frames fits several times"),
    ] = 16 * MIB
    queue_policy: Annotated[
        QueuePolicy, Unit("policy"), Reason("which message is dropped when such a queue is full; what is there is kept")
    ] = QueuePolicy.DROP_NEWEST
    retained_messages_max: Annotated[
        int, Ge(0), Le(100_000_000), Unit("messages"),
        Reason("retained messages; one more is delivered and not retained, and counted; 0 retains none, and says so"),
    ] = 2_000_000
    retained_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("what retained messages may take together; past it as above; what the topic had is cleared"),
    ] = 1024 * MIB
    stored_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("all messages in queues, in flight and retained, each counted once; past it every queue counts as full"),
    ] = 2048 * MIB

    # What the broker says of itself.
    sys_interval_seconds: Annotated[
        float, Ge(0), Le(86_400), Unit("seconds"),
        Reason("time between two publications of the $SYS topics, which say what has changed; 0 has none of them"),
    ] = 10.0

    # Caches.
    routes_max: Annotated[
        int, Ge(16), Le(100_000_000), Unit("routes"),
        Reason("topics whose subscribers are kept worked out; past it the oldest are forgotten and worked out anew"),
    ] = 65_536

    routes_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("what these routes may take together: one is as long as its topic, and 8 bytes for each subscription"),
    ] = 256 * MIB

    # What one principal may hold of a pot: an authenticated user, or an address where user names prove nothing.
    share_percent: Annotated[
        int, Ge(1), Le(100), Unit("percent"),
        Reason(
            "of what others leave of a pot, what one user may hold (one address, where users are anonymous): three "
            "quarters for one alone, and whoever comes next always finds some. 100 suits a broker with a single user"
        ),
    ] = 75
    sessions_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason(
            "share of sessions_max and sessions_bytes_max; its oldest sessions whose clients are away make room. "
            "0: as share_percent"
        ),
    ] = 0
    subscriptions_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason(
            "share of subscriptions_max, subscriptions_bytes_max and searching_filters_max, for all its clients "
            "together; one more is refused. 0: as share_percent"
        ),
    ] = 0
    retained_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of retained_messages_max and retained_bytes_max; one more is not retained. 0: as share_percent"),
    ] = 0
    stored_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of stored_bytes_max; past it its own queues count as full, and no others. 0: as share_percent"),
    ] = 0
    marks_share_percent: Annotated[
        int, Ge(0), Le(100), Unit("percent"),
        Reason("share of marks_max; past it the idlest of its own producers is forgotten. 0: as share_percent"),
    ] = 0
    unkept_seconds_max: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason(
            "time an MQTT 3.1.1 publisher waits, whose message no queue has room for; then it is disconnected, for its "
            "version has no word for that (5.0 has: 0x97)"
        ),
    ] = 10.0

    # Publishing again what may have been taken.
    marks_max: Annotated[
        int, Ge(1), Le(10_000_000), Unit("producers"),
        Reason("producers whose high-water mark is kept, some 500 bytes each; past it the idlest is forgotten"),
    ] = 10_000
    marks_jump_max: Annotated[
        int, Ge(1), Le(2**63), Unit("messages"),
        Reason("by how much a second connection may move the mark of a producer that another one, still there, uses; "
               "as much in batches; a retry begins at most one above"),
    ] = 1_000_000

    # The archive.
    archive_buffer_bytes_max: Annotated[
        int, Ge(1 * MIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("messages on their way to the archive; at 100 MB/s, a disk may stand still for half a second"),
    ] = 64 * MIB
    archive_batch_messages_max: Annotated[
        int, Ge(1), Le(1_000_000), Unit("messages"),
        Reason("messages written together; fewer cost more each, more must be read to get at one"),
    ] = 4_096
    archive_batch_seconds_max: Annotated[
        float, Ge(0.001), Le(60), Unit("seconds"),
        Reason("time a message waits for others to be written with"),
    ] = 0.1
    archive_segment_bytes_max: Annotated[
        int, Ge(64 * KIB), Le(1024 * 1024 * MIB), Unit("bytes"),
        Reason("size at which a segment is closed; what retention removes at once"),
    ] = 64 * MIB
    archive_segment_seconds_max: Annotated[
        float, Ge(1), Le(86_400), Unit("seconds"),
        Reason("age at which a segment is closed, so that a quiet archive has closed ones too"),
    ] = 60.0
    archive_bytes_max: Annotated[
        int, Ge(0), Le(1024 * 1024 * 1024 * MIB), Unit("bytes"),
        Reason("what all segments may take; past it the oldest are removed. 0 keeps all, until the disk is full"),
    ] = 10 * 1024 * MIB
    archive_replays_max: Annotated[
        int, Ge(0), Le(10_000), Unit("replays"),
        Reason("replays that read at once, some MiB each; those that have gone live do not count"),
    ] = 64
    archive_seconds_max: Annotated[
        float, Ge(0), Le(100 * 365 * 86_400), Unit("seconds"),
        Reason("age of the messages at which a segment is removed; 0 keeps them for as long as there is room"),
    ] = 0.0

    # Stopping.
    grace_seconds: Annotated[
        float, Ge(0), Le(3600), Unit("seconds"),
        Reason("time to flush what clients have not read yet after SIGTERM; Docker kills after 10 s"),
    ] = 8.0

    @property
    def retains(self) -> bool:
        """Are messages retained at all?"""
        return self.retained_messages_max > 0 and self.retained_bytes_max > 0
