"""Exchanges, bindings and routing of AMQP 0-9-1 (3.1.3), with RabbitMQ's extensions. Without I/O, without a clock.

One `Exchanges` is one vhost. It knows exchanges and the *names* of queues; queues, permissions and messages are the
caller's. Names and keys are `str`, as the codec reads short strings; tables are dicts as `field_table` reads them.

    exchanges = Exchanges("/", queues, keeper=keeper, topics=topics)      queues: `in` says whether a queue exists
    exchanges.declare("x", "direct", durable=True, auto_delete=False, internal=False, arguments={}, passive=False)
    exchanges.delete("x", if_unused=False)
    exchanges.bind("queue", "x", "key", {})                exchanges.unbind("queue", "x", "key", {})
    exchanges.bind_exchange("to", "from", "key", {})       exchanges.unbind_exchange("to", "from", "key", {})
    exchanges.queue_ended("queue")                         its bindings go, and exchanges that delete themselves then
    exchanges.find("x")                                    the AmqpExchange, or None; `in_force()` has all
    exchanges.bindings("x"), exchanges.bindings_to("queue")
    reached = exchanges.publish("x", "key", headers, properties, more_keys=(*cc, *bcc))     reached.queues, .topics

Errors are `AmqpError` (protocols/amqp/errors.py, reply_codes.py: the same files as the codec's) with RabbitMQ's code
and text: 404 for what does not exist, 403 for the default exchange, names that begin with `amq.` and publishing to an
internal exchange, 406 for unequal redeclares and malformed arguments, 503 (which closes the connection) for a type that
nobody knows. Deleting and unbinding what does not exist is no error, as in RabbitMQ. What fails has changed nothing.

**What publish returns**, a `Destinations`:

    queues      names of queues, each once, however many bindings, keys and exchanges lead to it
    topics      routing keys to publish to the broker's own topics: those that came to the shared `amq.topic` (below);
                () in every other case. A queue that is in `queues` may be reached by a topic as well: the caller puts
                both into one route, so that it gets one copy
    unroutable  True: neither, so a mandatory message returns (an alternate exchange was tried)
    prepared    None at first; the caller's own, for example the `wire.Route` of these queues. It is dropped with the
                answer
    valid       False as soon as a change of bindings may have made it wrong, and from the start where it is that of one
                message only: who keeps an answer looks at this first

For the types whose answer is a matter of the key alone (direct, fanout, topic, x-consistent-hash by key) the same key
gives the same object (and a fanout one for all keys) until something on its path changes, so `prepared` is made once
(kept_answers.py has the bound). `headers` may be a callable that returns the table, or None: it is called only when an
exchange on the path reads it, so the caller need not decode headers for the others. `properties` are the codec's
BasicProperties, or any object with `message_id`, `correlation_id` and `timestamp`; only a consistent hash by property
reads them.

**The default exchange** is `""`: a key reaches the queue of that name, if there is one. It takes no part in bindings.

**Delays.** `find("x").delay(headers)` is the milliseconds for which a message to an `x-delayed-message` exchange is
held (header `x-delay`; 0: not at all). The caller holds it (core.Delayed) and calls `publish` when it is due.

**amq.topic of the vhost `/` is the broker's topic space**, so that MQTT and native clients publish to its bindings. Who
gives `topics` (a `TopicSpace`) makes it so; without it `amq.topic` is a topic exchange like others, as in other
vhosts. Then the bindings of queues to it are no entries of this package's index: `TopicSpace.bind(queue, key)` asks the
owner for a subscription of the queue in the router, with AMQP's spelling, and publishing to it returns the key in
`topics` instead of asking an index. A binding of it to another exchange is kept here, so that messages of AMQP clients
are routed in one go; for messages of other clients `TopicSpace.watch(key)` asks the owner to listen to that filter,
and to call `publish_onward("amq.topic", key, headers)` with what comes (not with what an AMQP client published by
`publish`, which has been routed on), which returns the queues behind.

Other topic exchanges have a `matchcore.FilterIndex` each, whose ids are the numbers of destinations: the same engine,
and the same tiers, but not the same index. One index for all, with the exchange's name as a first word, was the
alternative: a message to one exchange would then walk through the classes of all, the limit of words would be one less,
and deleting an exchange would have to remove its filters one by one, in place of dropping its index.

**What survives a restart** is reported to the `Keeper`: durable exchanges, and bindings between durable things.
`stored.StoredExchanges` is one over the core's declarations; its docstring says how an owner uses it. While it
restores, `TopicSpace.bind` comes for filters that the core has stored with their queues.

    keeper = StoredExchanges(broker.declarations, "/", lambda name: broker.queues.find(name).options.durable)
    exchanges = Exchanges("/", queues, keeper=keeper, topics=topics)
    keeper.restore(exchanges)                                             TopicSpace.bind: nothing if keeper.restoring

The files: `registry` (Exchanges) · `exchange` (AmqpExchange, Destinations) · `kinds` (the types by name) · `direct`,
`fanout`, `topic`, `shared`, `headers`, `conditions` (their index), `header_values`, `consistent_hash` · `kept_answers`,
`kept_answer` · `arguments` (values as RabbitMQ compares them) · `ports` (what the owner provides) · `stored` (over a
restart) · `definitions` (RabbitMQ's file).
"""

from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange, Destinations
from fanlight_broker.protocols.amqp.exchanges.ports import Binding, ExchangeLimits, Keeper, TopicSpace
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges

__all__ = ["AmqpExchange", "Binding", "Destinations", "ExchangeLimits", "Exchanges", "Keeper", "TopicSpace"]
