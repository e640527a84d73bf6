// A subscription: a bounded queue between the connection and the program.
//
//     overflow         when `pendingMessages` or `pendingBytes` is reached
//     'wait'           (default) the broker has credit for no more than pendingMessages; the others wait there, up to its
//                      own limit. A message above pendingBytes is dropped and counted
//     'drop_newest'    drop what comes
//     'drop_oldest'    drop what has waited longest
//     'error'          drop what comes, and throw SubscriptionOverflow to the program
//
// A browser's WebSocket cannot be told to stop reading, so there is no other way to hold a broker up than its credit.

import { BrokerError, SubscriptionEnded, SubscriptionOverflow } from './errors.js'
import { TYPE } from './frames.js'
import { Message } from './message.js'
import { positive, syntaxNumber } from './options.js'

const OVERFLOWS = ['wait', 'drop_newest', 'drop_oldest', 'error']

export class Subscription {
  number
  confirmed = false // by an OK, once: made again on each later connection
  #queue = []
  #taken = 0 // of the front of #queue; it is cut now and then
  #bytes = 0
  #waiting = [] // { resolve, reject } of next()
  #owed = 0 // taken since credit was last given back
  #ended = null
  #overflowed = null

  constructor (client, filter, options) {
    this.client = client
    this.filter = filter
    this.options = options
    this.syntax = syntaxNumber(options.syntax)
    this.stats = { delivered: 0, taken: 0, dropped: 0, droppedByBroker: 0 }
    if (!OVERFLOWS.includes(options.overflow)) throw new TypeError(`overflow is one of ${OVERFLOWS.join(', ')}, not ${options.overflow}`)
    positive('pendingMessages', options.pendingMessages)
    positive('pendingBytes', options.pendingBytes)
    this.credit = options.credit ?? (options.overflow === 'wait' ? options.pendingMessages : undefined)
    if (this.credit !== undefined) positive('credit', this.credit)
    this.limit = Math.max(options.pendingMessages, this.credit ?? 0) // room for all that credit lets in
  }

  /** Messages and bytes that wait to be taken. */
  get pending () { return { messages: this.#length, bytes: this.#bytes } }
  get #length () { return this.#queue.length - this.#taken }
  /** Why no further message will come; null while some may. */
  get ended () { return this.#ended }

  // -- taking ---------------------------------------------------------------------------------------------------------

  /**
   * The next message. Rejects with SubscriptionEnded, SubscriptionOverflow, why the subscription was lost, or the reason
   * of `signal`.
   */
  async next ({ signal } = {}) {
    signal?.throwIfAborted()
    if (this.#overflowed !== null) {
      const error = this.#overflowed
      this.#overflowed = null
      throw error
    }
    if (this.#length > 0) return this.#take()
    if (this.#ended !== null) throw this.#ended
    const { promise, resolve, reject } = deferred()
    const waiter = { resolve, reject }
    const give = () => {
      this.#waiting = this.#waiting.filter((each) => each !== waiter)
      reject(signal.reason)
    }
    this.#waiting.push(waiter)
    signal?.addEventListener('abort', give, { once: true })
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', give)
    }
  }

  async * [Symbol.asyncIterator] () {
    try {
      while (true) yield await this.next()
    } catch (error) {
      if (!(error instanceof SubscriptionEnded)) throw error
    } finally {
      await this.unsubscribe() // the loop was left
    }
  }

  #take () {
    const message = this.#queue[this.#taken]
    this.#queue[this.#taken++] = undefined
    if (this.#taken > 64 && 2 * this.#taken > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#taken)
      this.#taken = 0
    }
    this.#bytes -= message.size
    this.stats.taken += 1
    this.#giveBack()
    return message
  }

  /** In halves: one frame for many messages, and the broker need never wait for the last one to be taken. */
  #giveBack () {
    if (this.credit === undefined) return
    this.#owed += 1
    if (2 * this.#owed >= this.credit && this.#ended === null) {
      this.post(TYPE.CREDIT, { messages: this.#owed })
      this.#owed = 0
    }
  }

  // -- coming ---------------------------------------------------------------------------------------------------------

  deliver (frame) {
    this.stats.delivered += 1
    const message = this.made(frame)
    if (this.#waiting.length > 0) {
      this.stats.taken += 1
      this.#waiting.shift().resolve(message)
      this.#giveBack()
      return
    }
    if (this.#isFull(frame.size) && !this.#makeRoom(frame.size)) return
    this.#queue.push(message)
    this.#bytes += message.size
  }

  /** The message of a frame. */
  made (frame) {
    return new Message(frame, this.client)
  }

  #isFull (size) {
    return this.#length >= this.limit || this.#bytes + size > this.options.pendingBytes
  }

  /** Whether the message that came is let in. */
  #makeRoom (size) {
    const { overflow, pendingBytes } = this.options
    if (overflow === 'drop_oldest' && size <= pendingBytes) {
      while (this.#length > 0 && this.#isFull(size)) {
        this.#take()
        this.stats.taken -= 1
        this.#countDropped()
      }
      return true
    }
    this.#countDropped()
    this.#giveBack()
    if (overflow === 'error') {
      const details = { messages: this.#length, bytes: this.#bytes, dropped: this.stats.dropped }
      this.#overflowed ??= new SubscriptionOverflow(`${this.filter}: its queue is full (${details.messages} messages, ` +
        `${details.bytes} bytes): take messages faster, or give it more pendingMessages or pendingBytes`, { details })
    }
    return false
  }

  #countDropped () {
    this.stats.dropped += 1
    this.client.stats.dropped += 1
  }

  /** Drop what was not taken: it comes again. */
  forgetQueued () {
    this.#queue = []
    this.#taken = this.#bytes = 0
  }

  // -- its life -------------------------------------------------------------------------------------------------------

  /** End it. What has come can still be taken. */
  async unsubscribe () {
    if (this.#ended === null) await this.client.subscriptions.end(this)
  }

  /** A frame about it, now; returns whether there was a connection to send it by. */
  post (type, fields) {
    return this.#ended === null && this.client.subscriptions.post(this, type, fields)
  }

  /** The type and fields of what puts it in force on a connection; null if it has had all its messages. */
  request () {
    const { group, noEcho, after, where, brokerPendingMessages } = this.options
    const left = after === undefined ? undefined : after - this.stats.delivered
    if (left !== undefined && left <= 0) return null
    this.#owed = 0
    this.client.require('where', where !== undefined, 'selectors: do without `where`')
    return [TYPE.SUBSCRIBE, {
      filter: this.filter,
      options: given({
        syntax: this.syntax || undefined, group, no_echo: noEcho || undefined, after: left, where,
        credit: this.credit === undefined ? undefined : Math.max(0, this.credit - this.#length),
        pending_messages: brokerPendingMessages
      })
    }]
  }

  /** OK has come, with this; CONSUMER_INFO has come; REPLAY_END has come. */
  answered (result) {}
  informed (info) {}
  replayEnded (frame) {}

  endedByBroker (frame) {
    this.stats.droppedByBroker += Number(frame.dropped)
    const text = `the subscription to ${this.filter} has ended: ${frame.reason}`
    const failed = !['after', 'end'].includes(frame.reason)
    this.finish(failed ? new BrokerError(text, { code: frame.reason }) : new SubscriptionEnded(text, { code: frame.reason }))
  }

  /** No message will come any more: the program learns of it behind the last one. */
  finish (error) {
    this.#ended ??= error
    for (const { reject } of this.#waiting.splice(0)) reject(this.#ended)
  }
}

/** What has a value. */
export const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

export function deferred () {
  let resolve, reject
  const promise = new Promise((...both) => { [resolve, reject] = both })
  return { promise, resolve, reject }
}
