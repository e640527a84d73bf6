// The client: publish, subscribe, request and reply, over a link that is made again when it is lost.

import { BrokerError, ConnectionClosed, NoResponders, SubscriptionEnded } from './errors.js'
import { TYPE } from './frames.js'
import { Link } from './link.js'
import { below, Message } from './message.js'
import { chosen, PUBLISH, QUEUE, REPLAY, SUBSCRIBE, syntaxNumber } from './options.js'
import { QueueSubscription } from './queue.js'
import { Replay } from './replay.js'
import { deferred, given, Subscription } from './subscription.js'
import { Subscriptions } from './subscriptions.js'

const TEXT = new TextEncoder()
const EMPTY = new Uint8Array(0)

export class Client {
  #link
  #options
  #inbox = null // { info, number, ready }: of the connection that `info` is of
  #replies = new Map() // word -> { resolve, reject }
  #lastReply = 0

  /** Use `connect`. */
  constructor (addresses, options) {
    this.#options = options
    this.stats = {
      published: 0, delivered: 0, dropped: 0, unclaimed: 0, reconnects: 0, unsentKept: 0, unsentDropped: 0,
      bytesIn: 0, bytesOut: 0, held: false, heldSeconds: 0
    }
    this.#link = new Link(addresses, options, {
      messageReceived: (frame) => this.#messageReceived(frame),
      frameReceived: (frame) => this.#frameReceived(frame),
      refused: (error) => this.#tell(options.onError, error),
      disconnected: (error) => this.#disconnected(error),
      resume: () => this.subscriptions.resume(),
      reconnected: () => this.#tell(options.onReconnect, this),
      failed: (error) => this.#failed(error)
    }, this.stats)
    this.subscriptions = new Subscriptions(this.#link)
  }

  open () { return this.#link.open() }

  get url () { return this.#link.address.url }
  get connected () { return this.#link.state === 'connected' }
  /** Closed by `close`, or given up: no further attempt is made. */
  get closed () { return this.#link.state === 'closed' }
  /** What the broker said in its last WELCOME: server, connection, client, limits, features, ... */
  get info () { return this.#link.info }
  /** Messages without a receipt, and bytes of all frames, that have not been handed to the socket. */
  get unsent () { return { ...this.#link.unsent } }

  // -- publishing -----------------------------------------------------------------------------------------------------

  /**
   * Publish a message. The payload: a string or bytes as they are, anything else as JSON with a content-type.
   *
   * Without `receipt` it is sent within a turn and resolves with undefined; waits only while the outbox is full. What the
   * broker refuses of it goes to `onError`. With `receipt`, resolves with { routed, repeated, delayed, id } when the broker
   * has accepted it.
   */
  async publish (topic, payload, options = {}) {
    const { receipt, timeoutSeconds, ...chosenOptions } = chosen(PUBLISH, options, 'publish')
    const fields = this.#content(topic, payload, chosenOptions)
    if (receipt) {
      const { routed, repeated, delayed, id } = await this.#asked(TYPE.PUBLISH, fields, timeoutSeconds)
      this.stats.published += 1
      return { routed, repeated, delayed, id }
    }
    if (this.closed) throw this.#link.notConnected()
    const frame = this.#link.encoded(TYPE.PUBLISH, fields)
    await this.#link.room()
    this.#link.postMessage(frame)
    this.stats.published += 1
  }

  /** Publish with a reply topic of our own, and resolve with the first answer. Rejects with NoResponders at once. */
  async request (topic, payload, options = {}) {
    const { timeoutSeconds, receipt, reply, ...rest } = chosen(PUBLISH, options, 'request')
    if (reply !== undefined || receipt) throw new TypeError('a request has a reply topic and a receipt of its own')
    const word = String(++this.#lastReply)
    const { promise, resolve, reject } = deferred()
    promise.catch(() => {}) // whoever waits hears of it below
    this.#replies.set(word, { resolve, reject })
    try {
      return await this.#link.within(timeoutSeconds, async () => {
        await this.#link.connected()
        const inbox = await this.#subscribedInbox()
        const fields = this.#content(topic, payload, { ...rest, reply: below(inbox, word, syntaxNumber(rest.syntax)) })
        const { routed } = await this.#link.ask(TYPE.PUBLISH, fields)
        this.stats.published += 1
        if (routed === 0) throw new NoResponders(`nobody is subscribed to ${topic}`, { details: { topic } })
        return promise
      })
    } finally {
      this.#replies.delete(word)
    }
  }

  /** Resolves when the broker has processed all that was sent before. */
  async flush ({ timeoutSeconds } = {}) {
    await this.#asked(TYPE.PING, {}, timeoutSeconds)
  }

  /** Cancel a delayed message by the `id` of its receipt. Resolves with whether it waited still. */
  async cancel (id, { timeoutSeconds } = {}) {
    this.require('cancel', true, 'delayed messages that can be cancelled')
    const result = await this.#asked(TYPE.QUEUE, { verb: 'cancel', arguments: { id } }, timeoutSeconds)
    return result.cancelled
  }

  /** A verb of QUEUE (docs/native-protocol.md, 3.10), such as 'info', with its arguments; resolves with its result. */
  async queueRequest (verb, values = {}, { timeoutSeconds } = {}) {
    this.require('queues', true, 'queues')
    return this.#asked(TYPE.QUEUE, { verb, arguments: values }, timeoutSeconds)
  }

  #asked (type, fields, timeoutSeconds) {
    return this.#link.within(timeoutSeconds, async () => {
      await this.#link.connected()
      return this.#link.ask(type, fields)
    })
  }

  /** The fields of a PUBLISH, checked: what the broker would close the connection for is refused here. */
  #content (topic, payload, { headers, syntax, reply, mark, delaySeconds, deliverAt }) {
    let named = headers
    let bytes = EMPTY
    if (typeof payload === 'string') bytes = TEXT.encode(payload)
    else if (payload instanceof ArrayBuffer) bytes = new Uint8Array(payload)
    else if (ArrayBuffer.isView(payload)) bytes = new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength)
    else if (payload !== undefined) {
      bytes = TEXT.encode(JSON.stringify(payload))
      named = { 'content-type': 'application/json', ...headers }
    }
    const reserved = Object.keys(named ?? {}).find((name) => name.startsWith('$'))
    if (reserved !== undefined) throw new TypeError(`the header ${reserved}: names that begin with $ are reserved`)
    this.require('marks', mark !== undefined, 'marks: it would accept a repeated message again')
    const due = deliverAt instanceof Date ? deliverAt.getTime() / 1000 : deliverAt
    const options = given({ delay: delaySeconds, deliver_at: due })
    const delayed = Object.keys(options).length > 0
    this.require('delay', delayed, 'delayed messages: it would deliver at once')
    return {
      topic, payload: bytes, headers: named, syntax: syntaxNumber(syntax), reply, mark, options: delayed ? options : undefined
    }
  }

  // -- subscribing ----------------------------------------------------------------------------------------------------

  /**
   * A subscription in force: `for await (const message of await client.subscribe('stock.#'))`. With `queue` (or
   * `queue: undefined` and `ack: true`) messages wait in a queue at the broker until `message.ack()`.
   */
  async subscribe (filter, options = {}) {
    const { ack, ...rest } = options
    if (ack === true || rest.queue !== undefined) {
      return this.subscriptions.begin(new QueueSubscription(this, filter, chosen(QUEUE, rest, 'subscribe with a queue')))
    }
    return this.subscriptions.begin(new Subscription(this, filter, chosen(SUBSCRIBE, rest, 'subscribe')))
  }

  /** A subscription that begins with what the broker has archived. */
  async replay (filter, options = {}) {
    return this.subscriptions.begin(new Replay(this, filter, chosen(REPLAY, options, 'replay')))
  }

  /** Throws BrokerError `unsupported` where something is used that this broker would not know, or ignore. */
  require (feature, used, what) {
    if (used && this.connected && !(this.info.features ?? []).includes(feature)) {
      throw new BrokerError(`this broker has no ${what}`, { code: 'unsupported', details: { feature } })
    }
  }

  async #subscribedInbox () {
    const { info } = this.#link
    if (this.#inbox?.info !== info) {
      const number = this.subscriptions.nextNumber()
      const ready = this.#link.ask(TYPE.SUBSCRIBE, { subscription: number, filter: below(info.inbox, '#', 0) })
      this.#inbox = { info, number, ready }
      ready.catch(() => { if (this.#inbox?.number === number) this.#inbox = null }) // the next request tries again
    }
    await this.#inbox.ready
    return info.inbox
  }

  // -- ending ---------------------------------------------------------------------------------------------------------

  /** Send what waits (for `closeSeconds` at most), say goodbye, close. May be called twice. */
  async close () {
    this.subscriptions.finishAll(new SubscriptionEnded('the client was closed', { code: 'closed' }))
    await this.#link.close()
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')] () {
    await this.close()
  }

  // -- called by the link ---------------------------------------------------------------------------------------------

  #messageReceived (frame) {
    this.stats.delivered += 1
    const subscription = this.subscriptions.get(frame.subscription)
    if (subscription !== undefined) subscription.deliver(frame)
    else if (frame.subscription !== this.#inbox?.number || !this.#replied(new Message(frame, this))) this.stats.unclaimed += 1
  }

  /** Whether it was a reply that somebody awaits. */
  #replied (message) {
    const reply = this.#replies.get(message.words.at(-1))
    reply?.resolve(message)
    return reply !== undefined
  }

  #frameReceived (frame) {
    if (frame.type === TYPE.ENDED) this.subscriptions.endedByBroker(frame)
    else if (frame.type === TYPE.CONSUMER_INFO) this.subscriptions.get(frame.subscription)?.informed(frame.info)
    else if (frame.type === TYPE.REPLAY_END) this.subscriptions.get(frame.subscription)?.replayEnded(frame)
  }

  #disconnected (error) {
    for (const { reject } of this.#replies.values()) reject(error)
    this.#replies.clear()
    this.#tell(this.#options.onDisconnect, error)
  }

  #failed (error) {
    this.subscriptions.finishAll(error ?? new ConnectionClosed('the client was closed'))
    for (const { reject } of this.#replies.values()) reject(error ?? new ConnectionClosed('the client was closed'))
    this.#replies.clear()
  }

  /** A program's function may throw: that is its own, and must not end the connection. */
  #tell (hook, value) {
    if (hook === undefined) return
    Promise.resolve().then(() => hook(value)).catch((error) => { queueMicrotask(() => { throw error }) })
  }
}
