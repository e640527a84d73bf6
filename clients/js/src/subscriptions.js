// The subscriptions of one client by their number, and their life on the wire: begun, made again, ended.

import { ConnectionLost, FanlightError, RequestTimeout, SubscriptionEnded } from './errors.js'
import { TYPE } from './frames.js'

export class Subscriptions {
  #link
  #byNumber = new Map()
  #last = 0

  constructor (link) {
    this.#link = link
  }

  [Symbol.iterator] () {
    return this.#byNumber.values()
  }

  nextNumber () {
    return ++this.#last
  }

  get (number) {
    return this.#byNumber.get(number)
  }

  /** SUBSCRIBE, and its OK. It is entered before, because messages may come right behind that. */
  async begin (subscription) {
    subscription.number = this.nextNumber()
    this.#byNumber.set(subscription.number, subscription)
    try {
      while (true) {
        try {
          await this.#link.within(undefined, async () => {
            await this.#link.connected()
            await this.#ask(subscription)
          })
          break
        } catch (error) {
          if (!(error instanceof ConnectionLost) || this.#link.state !== 'reconnecting') throw error
        }
      }
    } catch (error) {
      this.#byNumber.delete(subscription.number)
      // Given up here, and perhaps in force there.
      this.#link.post(TYPE.UNSUBSCRIBE, { subscription: subscription.number })
      subscription.finish(error)
      throw error
    }
    subscription.confirmed = true
    return subscription
  }

  async #ask (subscription, options) {
    const request = subscription.request()
    if (request === null) {
      this.#forget(subscription) // it has had all its messages
      return
    }
    const [type, fields] = request
    const result = await this.#link.ask(type, { subscription: subscription.number, ...fields }, options)
    subscription.answered(result ?? {})
  }

  /** On a new connection, before what waits in the outbox. What is refused now ends with that error. */
  async resume () {
    const asked = [...this.#byNumber.values()].filter((each) => each.confirmed).map(async (subscription) => {
      try {
        await this.#ask(subscription, { first: true })
      } catch (error) {
        if (error instanceof ConnectionLost) throw error
        this.#byNumber.delete(subscription.number)
        subscription.finish(error)
      }
    })
    try {
      await this.#link.within(undefined, () => Promise.all(asked))
    } catch (error) {
      if (!(error instanceof RequestTimeout)) throw error // an OK that is late will come
    }
  }

  async end (subscription) {
    const { number } = subscription
    if (this.#byNumber.get(number) !== subscription) return
    try {
      if (this.#link.state === 'connected') {
        const result = await this.#link.within(undefined, () => this.#link.ask(TYPE.UNSUBSCRIBE, { subscription: number }))
        subscription.stats.droppedByBroker += Number(result?.dropped ?? 0)
      }
    } catch (error) {
      // Its ENDED came first, or the connection went, and the subscription with it.
      if (!(error instanceof ConnectionLost || error.code === 'no_such_subscription')) throw error
    } finally {
      this.#forget(subscription)
    }
  }

  async change (subscription, options) {
    if (this.#byNumber.get(subscription.number) !== subscription) throw subscription.ended ?? new FanlightError('not in force')
    if (this.#link.state !== 'connected') return // the SUBSCRIBE of the next connection says it
    await this.#link.within(undefined, () => this.#link.ask(TYPE.CONSUMER, { subscription: subscription.number, options }))
  }

  post (subscription, type, fields) {
    return this.#byNumber.get(subscription.number) === subscription &&
      this.#link.post(type, { subscription: subscription.number, ...fields })
  }

  finishAll (error) {
    for (const subscription of this.#byNumber.values()) subscription.finish(error)
    this.#byNumber.clear()
  }

  endedByBroker (frame) {
    const subscription = this.#byNumber.get(frame.subscription)
    this.#byNumber.delete(frame.subscription)
    subscription?.endedByBroker(frame)
  }

  #forget (subscription) {
    this.#byNumber.delete(subscription.number)
    subscription.finish(new SubscriptionEnded(`the subscription to ${subscription.filter} has ended`))
  }
}
