// What a program gets: a message, and one of a queue, which is to be acknowledged.

import { TYPE } from './frames.js'

const TEXT = new TextDecoder('utf-8')
const SYNTAX_NAMES = ['amqp', 'mqtt']
const SEPARATORS = ['.', '/']

export class Message {
  #frame

  constructor (frame, client) {
    this.#frame = frame
    this.client = client
  }

  /** As it was published; octets that are not UTF-8 are U+FFFD here, and as they were in `topicBytes`. */
  get topic () { return asText(this.#frame.topic) }
  get topicBytes () { return asBytes(this.#frame.topic) }
  get syntax () { return SYNTAX_NAMES[this.#frame.syntax] }
  get words () {
    const { topic, syntax } = this.#frame
    return topic.length === 0 && syntax === 0 ? [] : this.topic.split(SEPARATORS[syntax])
  }

  get payload () { return this.#frame.payload }
  get headers () { return this.#frame.headers ?? {} }
  /** The topic to which an answer goes, as `publish` takes it; null if none is asked for. */
  get reply () { return this.#frame.reply }
  /** Of an archived message of a replay: its offset, and when the broker received it; undefined for others. */
  get offset () { return this.#frame.offset }
  get timestamp () {
    return this.#frame.timestamp === undefined ? undefined : new Date(Number(this.#frame.timestamp) / 1000)
  }

  get size () { return this.#frame.size }

  text () { return TEXT.decode(this.#frame.payload) }
  json () { return JSON.parse(this.text()) }

  /** Publish an answer to `reply`, with the request's correlation-id. Throws Error if no answer is asked for. */
  async respond (payload, options = {}) {
    if (this.reply === null) throw new Error(`the message on ${this.topic} asks for no answer: it has no reply topic`)
    const correlation = this.headers['correlation-id']
    const headers = correlation === undefined ? options.headers : { 'correlation-id': correlation, ...options.headers }
    return this.client.publish(this.reply, payload, { ...options, headers, syntax: this.syntax })
  }
}

/**
 * A message of a queue. Each of these returns whether it was sent: false if the connection that the message came by is
 * lost, or the message was settled before. The broker delivers an unsettled message again.
 */
export class QueueMessage extends Message {
  #frame
  #subscription
  #epoch
  #settled = false

  constructor (frame, subscription) {
    super(frame, subscription.client)
    this.#frame = frame
    this.#subscription = subscription
    this.#epoch = subscription.epoch
  }

  /** Of this delivery, in its queue. */
  get sequence () { return this.#frame.sequence }
  /** How often it was delivered, this time included. */
  get attempt () { return this.#frame.attempt }
  get redelivered () { return this.attempt > 1 }

  /** It is done. `all`: so are all that this subscription got before it. */
  ack ({ all = false } = {}) { return this.#settle(TYPE.ACK, { options: all ? { all: true } : null }) }
  /** Deliver it again, to another consumer if there is one; not before `delaySeconds`. */
  nack ({ delaySeconds } = {}) { return this.#settle(TYPE.NACK, { delay: delaySeconds }) }
  /** It can never be done: it is a dead letter, if its queue has a topic for them. */
  term (reason) { return this.#settle(TYPE.TERM, { reason }) }
  /** It takes longer: the time to acknowledge begins anew. */
  inProgress () { return this.#send(TYPE.IN_PROGRESS, {}) }

  #settle (type, fields) {
    const sent = this.#send(type, fields)
    this.#settled = true
    return sent
  }

  #send (type, fields) {
    if (this.#settled || this.#epoch !== this.#subscription.epoch) return false
    return this.#subscription.post(type, { sequence: this.#frame.sequence, ...fields })
  }
}

export const asText = (topic) => typeof topic === 'string' ? topic : TEXT.decode(topic)
export const asBytes = (topic) => typeof topic === 'string' ? new TextEncoder().encode(topic) : topic

/** `prefix`, which is spelled with dots, with a word behind it, in the syntax of this number. */
export function below (prefix, word, syntax) {
  return [...asText(prefix).split('.'), word].join(SEPARATORS[syntax])
}
