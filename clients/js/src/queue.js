// A consumer of a named queue: what it gets waits at the broker until it is acknowledged (section 3.9).
//
// What is here is bounded by `prefetch`. After a lost connection the broker delivers it again, so the queue is emptied.

import { TYPE } from './frames.js'
import { QueueMessage } from './message.js'
import { positive } from './options.js'
import { given, Subscription } from './subscription.js'

const PREFETCH = 100 // the broker's default
const ANONYMOUS_SECONDS = 60 // that a queue without a name stays without its client, which may be reconnecting

export class QueueSubscription extends Subscription {
  epoch = 0 // rises with each connection: what came by an earlier one cannot be acknowledged
  active = false // false also while another is the single active consumer
  paused = false
  #changed = {}

  constructor (client, filter, options) {
    const { prefetch = PREFETCH } = options
    positive('prefetch', prefetch)
    super(client, filter, { ...options, overflow: 'drop_newest', pendingMessages: 2 * prefetch, pendingBytes: Infinity })
    this.queue = options.queue ?? `client.${globalThis.crypto.randomUUID()}`
    this.named = options.queue !== undefined
  }

  made (frame) {
    return new QueueMessage(frame, this)
  }

  request () {
    const { where, prefetch, ackWaitSeconds, deliver, durable, declare = {} } = this.options
    this.client.require('queues', true, 'queues')
    this.client.require('where', where !== undefined, 'selectors: do without `where`')
    this.epoch += 1
    this.active = false
    this.forgetQueued()
    const made = this.named ? declare : { expires: ANONYMOUS_SECONDS, ...declare }
    return [TYPE.SUBSCRIBE, {
      filter: this.filter,
      options: given({
        syntax: this.syntax || undefined, consumer: this.queue, ack: true, durable: (this.named && durable) || undefined,
        prefetch, ack_wait: ackWaitSeconds, deliver, where, queue: Object.keys(made).length > 0 ? made : undefined,
        ...this.#changed
      })
    }]
  }

  answered (result) {
    this.informed({ active: true, ...result })
  }

  informed (info) {
    if (typeof info.active === 'boolean') this.active = info.active
  }

  pause () { return this.change({ paused: true }) }
  resume () { return this.change({ paused: false }) }

  /** Another prefetch, another time to acknowledge for what is delivered from now on, or a pause. */
  async change ({ prefetch, ackWaitSeconds, paused }) {
    if (prefetch !== undefined) positive('prefetch', prefetch)
    const options = given({ prefetch, ack_wait: ackWaitSeconds, paused })
    await this.client.subscriptions.change(this, options)
    Object.assign(this.#changed, options)
    if (prefetch !== undefined) this.limit = Math.max(this.limit, 2 * prefetch)
    if (paused !== undefined) this.paused = paused
  }
}
