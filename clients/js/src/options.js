// The options of `connect` and of `subscribe`, with units, defaults and reasons.

import { Backoff } from './backoff.js'
import { FRAME_BYTES } from './frames.js'

const MIB = 1024 * 1024

/** Of `connect`. Times are in seconds. */
export const CONNECT = Object.freeze({
  name: undefined, // for logs and views; the broker makes one up
  user: undefined,
  password: undefined,
  token: undefined, // a JWT in place of a password
  slowPolicy: undefined, // what the broker does when this client falls behind: drop_newest, drop_oldest, disconnect, pause
  reconnect: undefined, // options of Backoff; false for none
  retryFirstConnect: false,
  connectSeconds: 10, // for the connection and the handshake; the broker itself allows 5 for the latter
  timeoutSeconds: 10, // to wait for any answer, unless a call says otherwise
  closeSeconds: 5, // that close() gives unsent messages
  pingSeconds: 15, // a dead peer is noticed within two of them
  pendingBytes: 8 * MIB, // unsent; publish() waits beyond
  pendingRequests: 65_536, // answers, and calls of publish(), awaited at once
  frameBytes: FRAME_BYTES, // largest frame that is accepted from the broker
  onDisconnect: undefined, // (error) => ...
  onReconnect: undefined, // (client) => ...
  onError: undefined, // (error) => ...: what the broker refuses of messages without a receipt
  WebSocket: undefined // the class to use; by default the one of the browser or of Node.js
})

/** Of `subscribe`, without a queue. */
export const SUBSCRIBE = Object.freeze({
  syntax: 'amqp',
  group: undefined,
  noEcho: false,
  after: undefined,
  where: undefined,
  credit: undefined, // with overflow 'wait': pendingMessages
  brokerPendingMessages: undefined, // with credit: that may wait at the broker
  pendingMessages: 65_536,
  pendingBytes: 16 * MIB,
  overflow: 'wait'
})

/** Of `subscribe` with a queue. */
export const QUEUE = Object.freeze({
  syntax: 'amqp',
  where: undefined,
  queue: undefined, // its name
  durable: true,
  prefetch: undefined, // the broker's default is 100
  ackWaitSeconds: undefined, // the broker's default is 30
  deliver: undefined,
  declare: undefined // what a new queue is made with: keys of section 3.9, such as messages_max
})

/** Of `replay`. */
export const REPLAY = Object.freeze({
  syntax: 'amqp',
  where: undefined,
  offset: undefined,
  epoch: undefined,
  since: undefined,
  end: undefined,
  pastOnly: false,
  pendingMessages: 65_536, // it cannot be held up: the socket of a browser reads on
  pendingBytes: 64 * MIB,
  overflow: 'error'
})

export const PUBLISH = Object.freeze({
  headers: undefined,
  syntax: 'amqp',
  reply: undefined,
  receipt: false,
  timeoutSeconds: undefined,
  mark: undefined,
  delaySeconds: undefined,
  deliverAt: undefined
})

export const SYNTAXES = Object.freeze({ amqp: 0, native: 0, mqtt: 1 })

/** `given` over `defaults`. Throws TypeError for a name that is not known. */
export function chosen (defaults, given, call) {
  for (const name of Object.keys(given)) {
    if (!(name in defaults)) {
      throw new TypeError(`${call}: there is no option ${name}; there are ${Object.keys(defaults).join(', ')}`)
    }
  }
  return { ...defaults, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
}

/** The wire's number of a syntax. Throws TypeError. */
export function syntaxNumber (syntax) {
  if (!Object.hasOwn(SYNTAXES, syntax)) throw new TypeError(`syntax is 'amqp' (or 'native') or 'mqtt', not ${syntax}`)
  return SYNTAXES[syntax]
}

export function positive (name, value) {
  if (!(value > 0)) throw new TypeError(`${name} must be above 0, not ${value}`)
}

export function connectOptions (given) {
  const options = chosen(CONNECT, given, 'connect')
  for (const name of ['connectSeconds', 'timeoutSeconds', 'closeSeconds', 'pingSeconds', 'pendingBytes',
    'pendingRequests', 'frameBytes']) positive(name, options[name])
  if (options.token !== undefined && options.password !== undefined) throw new TypeError('give a password or a token, not both')
  options.backoff = options.reconnect === false ? null : new Backoff(options.reconnect === true ? {} : options.reconnect)
  return options
}
