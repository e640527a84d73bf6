// The link to a broker: one connection after another, what is unsent between them, and what awaits an answer.
//
//               open()                   connection lost
//     new ---------------> connected ---------------> reconnecting
//      '-- fails: closed    ^  '-- close(): closed <--'  |   close(), refused for good, attempts used up
//                           '----------------------------'  WELCOME
//
// While reconnecting, messages without a receipt wait in the outbox up to its bound; whoever awaits an answer has got
// ConnectionLost.

import { Connection, errorOf } from './connection.js'
import { ConnectionClosed, ConnectionLost, FATAL_CODES, LimitExceeded, RequestTimeout } from './errors.js'
import { encode, TYPE } from './frames.js'
import { deferred } from './subscription.js'

const WRITE_BYTES = 64 * 1024 // of one message of the WebSocket, unless a frame has more
const YIELD_BYTES = 256 * 1024 // after which a publisher lets others have a turn: messages and answers come between turns
const POLL_MS = 10 // a WebSocket does not say when it has sent what it holds
const HEARTBEAT = 0 // the token of a PING; requests begin at 1
const U32_MAX = 0xffffffff

export class Link {
  state = 'new'
  info = {}
  failure = null // why it is closed, unless close() was called
  #connection = null
  #answers = new Map() // request -> { resolve, reject }
  #lastRequest = 0
  #outbox = [] // { frame, kept }: kept over a loss of the connection
  #flushing = false
  #watchers = [] // of any change: another state, room in the outbox
  #waiting = 0 // calls that wait for room
  #beat = null
  #posted = 0 // bytes of messages since the last turn of others
  #attempt = 0
  #turn = 0
  #round = 0 // of reconnecting: one that has lost its connection again leaves it to the next

  constructor (addresses, options, user, stats) {
    this.addresses = addresses
    this.options = options
    this.user = user
    this.stats = stats
    this.unsent = { messages: 0, bytes: 0 }
  }

  get address () { return this.addresses[this.#turn % this.addresses.length] }

  // -- opening, losing, opening again ---------------------------------------------------------------------------------

  /** The first connection. Rejects with why there is none. */
  async open () {
    while (this.state !== 'closed') {
      try {
        await this.#connect()
        return
      } catch (error) {
        if (!await this.#mayTryAgain(error, this.options.retryFirstConnect)) {
          this.#close(error)
          throw error
        }
      }
    }
    throw this.notConnected()
  }

  /** Wait before the next attempt. Returns whether there is to be one. */
  async #mayTryAgain (error, wanted) {
    const { backoff } = this.options
    // Each address is tried once before the first wait.
    if (FATAL_CODES.has(error.code) || this.state === 'closed') return false
    this.#turn += 1
    if (this.#turn % this.addresses.length !== 0) return true
    const seconds = wanted && backoff !== null ? backoff.delay(this.#attempt++) : undefined
    if (seconds === undefined) return false
    await this.#sleep(seconds)
    return this.state !== 'closed'
  }

  async #connect () {
    const connection = new Connection(this.address, this.options, {
      frameReceived: (frame) => this.#frameReceived(frame),
      connectionLost: (error) => this.#connectionLost(connection, error)
    })
    this.#connection = connection
    this.lost = null
    this.info = await connection.open()
    if (this.lost !== null) throw this.lost // the broker closed right behind its WELCOME
    if (this.state === 'closed') { // close() was called meanwhile
      connection.close()
      throw this.notConnected()
    }
    this.since = Date.now()
    const again = this.state === 'reconnecting'
    this.#startHeartbeat()
    this.state = 'connected'
    if (again) {
      this.stats.reconnects += 1
      this.stats.unsentKept += this.unsent.messages
      await this.user.resume()
    }
    this.#changed()
    this.#scheduleFlush()
  }

  #connectionLost (connection, error) {
    if (connection !== this.#connection) return
    this.lost = error
    this.stats.held = false
    clearInterval(this.#beat)
    this.#outbox = this.#outbox.filter((each) => each.kept)
    this.unsent.bytes = this.#outbox.reduce((sum, each) => sum + each.frame.length, 0)
    const answers = [...this.#answers.values()]
    this.#answers.clear()
    for (const { reject } of answers) reject(error)
    if (this.state === 'connected') {
      this.state = 'reconnecting'
      this.user.disconnected(error)
      this.#reconnect(error)
    }
    this.#changed()
  }

  async #reconnect (error) {
    if (this.options.backoff !== null && Date.now() - this.since >= 1000 * this.options.backoff.stable) this.#attempt = 0
    this.#turn = this.addresses.length - 1 // so that the first attempt waits, too: all clients come at once
    const round = ++this.#round
    while (await this.#mayTryAgain(error, true)) {
      try {
        await this.#connect()
        this.user.reconnected()
        return
      } catch (reason) {
        if (round !== this.#round) return
        error = reason
      }
    }
    if (this.state !== 'closed') this.#close(error)
  }

  /** No further attempt. `error`: why, for everyone who waits. */
  #close (error) {
    this.failure = error
    this.state = 'closed'
    this.stats.unsentDropped += this.unsent.messages
    this.#outbox = []
    this.unsent.messages = this.unsent.bytes = 0
    this.user.failed(error)
    this.#changed()
  }

  /** Send what waits, for `closeSeconds` at most, and say goodbye. */
  async close () {
    if (this.state === 'closed') return
    const until = Date.now() + 1000 * this.options.closeSeconds
    while (this.state === 'connected' && (this.#outbox.length > 0 || this.#connection.unsent > 0) && Date.now() < until) {
      this.#flush()
      await this.#sleep(POLL_MS / 1000)
    }
    const connection = this.state === 'connected' ? this.#connection : null
    clearInterval(this.#beat)
    this.#close(null)
    connection?.close()
    const closed = new ConnectionClosed('the client was closed')
    for (const { reject } of this.#answers.values()) reject(closed)
    this.#answers.clear()
  }

  #startHeartbeat () {
    const connection = this.#connection
    const idle = this.info.idle_seconds > 0 ? this.info.idle_seconds / 3 : Infinity
    const seconds = Math.min(this.options.pingSeconds, idle)
    let before = -1
    clearInterval(this.#beat)
    this.#beat = setInterval(() => {
      if (connection.received === before) {
        connection.abort(new ConnectionLost(`nothing came for ${seconds} s, not even an answer to a PING`, { code: 'timeout' }))
        return
      }
      before = connection.received
      this.post(TYPE.PING, { token: HEARTBEAT })
    }, 1000 * seconds)
  }

  // -- sending --------------------------------------------------------------------------------------------------------

  /** A frame, checked against the broker's limit: one above it would cost the connection. */
  encoded (type, fields) {
    const frame = encode(type, fields)
    const limit = this.info.limits?.frame_bytes
    if (frame.length - 4 > limit) {
      const details = { size: frame.length - 4, limit }
      throw new LimitExceeded(`a frame of ${details.size} bytes; this broker takes ${limit} (frame_bytes_max)`,
        { code: 'frame_too_large', details })
    }
    return frame
  }

  /** A message without a receipt. */
  postMessage (frame) {
    this.#posted += frame.length
    this.#put(frame, true)
    this.unsent.messages += 1
  }

  /** A frame of this connection only. Returns whether there is one. */
  post (type, fields) {
    if (this.state !== 'connected') return false
    this.#put(encode(type, fields), false)
    return true
  }

  /** Send a request; resolves with its answer. `first`: before what waits in the outbox. */
  async ask (type, fields, { first = false } = {}) {
    if (this.state !== 'connected') throw this.notConnected()
    const { pendingRequests } = this.options
    if (this.#answers.size >= pendingRequests) {
      throw new LimitExceeded(`${pendingRequests} requests wait for their answers: await some of them first`,
        { details: { limit: 'pendingRequests', value: pendingRequests } })
    }
    do this.#lastRequest = this.#lastRequest % U32_MAX + 1
    while (this.#answers.has(this.#lastRequest))
    const request = this.#lastRequest
    const frame = this.encoded(type, type === TYPE.PING ? { token: request } : { request, ...fields })
    const { promise, resolve, reject } = deferred()
    this.#answers.set(request, { resolve, reject })
    if (first) this.#connection.send(frame)
    else this.#put(frame, false)
    return promise
  }

  /** What `act` resolves with, in time. undefined: `timeoutSeconds` of the client. */
  async within (seconds = this.options.timeoutSeconds, act) {
    let timer
    const late = new Promise((resolve, reject) => {
      timer = setTimeout(() => {
        const state = this.state === 'connected' ? '' : ` (${this.state})`
        reject(new RequestTimeout(`no answer from ${this.address.url} within ${seconds} s${state}`, { details: { seconds } }))
      }, 1000 * seconds)
    })
    try {
      return await Promise.race([act(), late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Wait until there is a connection. */
  async connected () {
    while (this.state !== 'connected') {
      if (this.state === 'closed') throw this.notConnected()
      await this.#change()
    }
  }

  /** Wait while the outbox is full, and for others to have their turn. */
  async room () {
    const { pendingBytes, pendingRequests } = this.options
    if (this.unsent.bytes < pendingBytes) {
      if (this.#posted < YIELD_BYTES) return
      this.#posted = 0
      await nextTurn()
    }
    if (this.#waiting >= pendingRequests) {
      throw new LimitExceeded(`${pendingRequests} calls of publish() wait for room: await them`,
        { details: { limit: 'pendingRequests', value: pendingRequests } })
    }
    this.#waiting += 1
    try {
      while (this.unsent.bytes >= pendingBytes) {
        if (this.state === 'closed') throw this.notConnected()
        await this.#change()
      }
    } finally {
      this.#waiting -= 1
    }
  }

  notConnected () {
    if (this.failure !== null) return this.failure
    return this.state === 'reconnecting'
      ? new ConnectionLost(`there is no connection to ${this.address.url} just now; it is being made again`)
      : new ConnectionClosed('the client is closed')
  }

  #put (frame, kept) {
    this.#outbox.push({ frame, kept })
    this.unsent.bytes += frame.length
    this.#scheduleFlush()
  }

  /** At the end of this turn: what one turn sends goes in few messages. */
  #scheduleFlush () {
    if (this.#flushing || this.state !== 'connected') return
    this.#flushing = true
    queueMicrotask(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush () {
    let at = 0
    while (this.state === 'connected' && at < this.#outbox.length && this.#connection.writable) {
      const frames = []
      let bytes = 0
      do {
        const { frame, kept } = this.#outbox[at++]
        frames.push(frame)
        bytes += frame.length
        if (kept) this.unsent.messages -= 1
      } while (at < this.#outbox.length && bytes + this.#outbox[at].frame.length <= WRITE_BYTES)
      this.unsent.bytes -= bytes
      this.stats.bytesOut += bytes
      this.#connection.send(joined(frames, bytes))
    }
    this.#outbox.splice(0, at)
    if (at > 0) this.#changed()
    if (this.#outbox.length > 0 && this.state === 'connected' && !this.#flushing) {
      this.#flushing = true
      setTimeout(() => {
        this.#flushing = false
        this.#flush()
      }, POLL_MS)
    }
  }

  #changed () {
    for (const resolve of this.#watchers.splice(0)) resolve()
  }

  #change () {
    return new Promise((resolve) => this.#watchers.push(resolve))
  }

  /** Ends early when the client is closed. */
  async #sleep (seconds) {
    const until = Date.now() + 1000 * seconds
    let timer
    const over = new Promise((resolve) => { timer = setTimeout(resolve, 1000 * seconds) })
    while (this.state !== 'closed' && Date.now() < until) await Promise.race([over, this.#change()])
    clearTimeout(timer)
  }

  // -- receiving ------------------------------------------------------------------------------------------------------

  #frameReceived (frame) {
    this.stats.bytesIn += frame.size + 4
    switch (frame.type) {
      case TYPE.MESSAGE:
      case TYPE.DELIVERY: return this.user.messageReceived(frame)
      case TYPE.RECEIPT: return this.#settle(frame.request, frame)
      case TYPE.OK: return this.#settle(frame.request, frame.result)
      case TYPE.PONG: return this.#settle(frame.token, null)
      case TYPE.PING: return this.post(TYPE.PONG, { token: frame.token })
      case TYPE.ERROR: return this.#errorReceived(errorOf(frame))
      case TYPE.HELD:
        this.stats.held = frame.held
        this.stats.heldSeconds += Number(frame.seconds ?? 0)
        return
      default: this.user.frameReceived(frame)
    }
  }

  #settle (request, result) {
    const answer = this.#answers.get(request)
    this.#answers.delete(request)
    answer?.resolve(result)
  }

  #errorReceived (error) {
    const answer = this.#answers.get(error.request)
    this.#answers.delete(error.request)
    if (answer !== undefined) answer.reject(error)
    else this.user.refused(error)
  }
}

/** As a timer of 0, which a browser stretches to 4 ms. */
function nextTurn () {
  if (globalThis.setImmediate !== undefined) return new Promise((resolve) => setImmediate(resolve))
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
}

function joined (frames, bytes) {
  if (frames.length === 1) return frames[0]
  const all = new Uint8Array(bytes)
  let at = 0
  for (const frame of frames) {
    all.set(frame, at)
    at += frame.length
  }
  return all
}
