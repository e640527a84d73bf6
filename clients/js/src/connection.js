// One connection: a WebSocket from its opening over HELLO and WELCOME to its loss. It does not know what frames mean
// beyond the handshake; the client makes one after another.

import { BrokerError, ConnectError, ConnectionLost, FanlightError, ProtocolError } from './errors.js'
import { encode, FrameReader, TYPE, VERSION } from './frames.js'

const SUBPROTOCOL = 'fanlight'
const AGENT = 'fanlight-js/0.1.0'
const HIGH_WATER = 1024 * 1024 // bytes that the socket may hold unsent
const ADVICE = 'Does a broker listen there (native_websocket_port, 7425 by default), and is the origin of this page listed ' +
  'in native_websocket_origins? The browser does not say which it is.'

export class Connection {
  received = 0 // messages of the WebSocket
  #socket
  #reader
  #failure = null
  #refusal = null // the last ERROR, which says more than the GOODBYE behind it
  #opening // { resolve, reject } until WELCOME
  #open = true

  /** user: `frameReceived(frame)` and `connectionLost(error)`, both only after WELCOME. */
  constructor (address, options, user) {
    this.address = address
    this.options = options
    this.user = user
    this.#reader = new FrameReader(options.frameBytes)
  }

  /** Resolves with the `info` of WELCOME. Rejects with ConnectError, or what the broker answered. */
  async open () {
    const WebSocket = this.options.WebSocket ?? globalThis.WebSocket
    if (WebSocket === undefined) {
      throw new ConnectError('there is no WebSocket here: use Node.js 22, start Node.js 20 with --experimental-websocket, ' +
        'or pass the class of a package, as in connect(url, { WebSocket })')
    }
    const seconds = this.options.connectSeconds
    const timer = setTimeout(() => {
      this.abort(new ConnectError(`no answer from ${this.address.url} within ${seconds} s`, { details: { seconds } }))
    }, seconds * 1000)
    try {
      return await new Promise((resolve, reject) => {
        this.#opening = { resolve, reject }
        try {
          this.#socket = new WebSocket(this.address.url, SUBPROTOCOL)
        } catch (error) { // such as ws:// from a page that came by https://
          throw new ConnectError(`cannot connect to ${this.address.url}: ${error.message}`,
            { details: { url: this.address.url }, cause: error })
        }
        this.#socket.binaryType = 'arraybuffer'
        this.#socket.onopen = () => this.#hello()
        this.#socket.onmessage = (event) => this.#message(event.data)
        // A close follows, which says more; but not from Node.js 20, when there was no connection.
        this.#socket.onerror = () => { if (this.#opening !== undefined) this.#closed({ code: 1006, reason: '' }) }
        this.#socket.onclose = (event) => this.#closed(event)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  get writable () {
    return this.#open && this.#socket.bufferedAmount < HIGH_WATER
  }

  /** Bytes that were sent and have not left. */
  get unsent () {
    return this.#socket.bufferedAmount
  }

  send (bytes) {
    if (this.#open) this.#socket.send(bytes)
  }

  /** Say goodbye, and close when all was sent. */
  close () {
    this.send(encode(TYPE.GOODBYE, { reason: 'normal' }))
    this.#socket.close(1000)
  }

  /** Give it up: a close that is not answered is not waited for. */
  abort (error) {
    this.#failure ??= error
    this.#socket?.close()
    this.#lost()
  }

  #hello () {
    const { name, user, password, token, slowPolicy } = this.options
    const given = {
      client: name, user: user ?? this.address.user, password: token ?? password ?? this.address.password, agent: AGENT,
      slow_policy: slowPolicy
    }
    const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    try {
      this.send(encode(TYPE.HELLO, { version: VERSION, options }))
    } catch (error) { // a password that is no text
      this.abort(error)
    }
  }

  #message (data) {
    this.received += 1
    if (!this.#open) return
    if (!(data instanceof ArrayBuffer)) {
      this.abort(new ProtocolError('a text message came; the native protocol has none. Is that a Fanlight broker?'))
      return
    }
    try {
      for (const frame of this.#reader.feed(new Uint8Array(data))) {
        if (!this.#open) return
        this.#frame(frame)
      }
    } catch (error) { // ProtocolError; anything else is a defect of ours, and the client must not hang
      this.abort(error instanceof FanlightError ? error : new ProtocolError(`a frame could not be handled: ${error}`, { cause: error }))
    }
  }

  #frame (frame) {
    if (frame.type === TYPE.ERROR && frame.request === null) this.#refusal = errorOf(frame)
    if (frame.type === TYPE.GOODBYE) {
      const said = this.#refusal?.code === frame.reason ? this.#refusal.message : frame.text ?? frame.reason
      this.#failure = this.#opening !== undefined && this.#refusal !== null
        ? this.#refusal
        : new ConnectionLost(`the broker closed the connection to ${this.address.url}: ${said}`, { code: frame.reason })
      this.#socket.close(1000)
      return
    }
    if (this.#opening === undefined) {
      this.user.frameReceived(frame)
    } else if (frame.type === TYPE.WELCOME) {
      const { resolve } = this.#opening
      this.#opening = undefined
      resolve(frame.info)
    } else if (frame.type !== TYPE.ERROR) {
      throw new ProtocolError(`${frame.name} came before WELCOME`)
    }
  }

  #closed (event) {
    const how = event.reason ? `${event.code} ${event.reason}` : `${event.code}`
    this.#failure ??= this.#opening === undefined
      ? new ConnectionLost(`the connection to ${this.address.url} was lost (WebSocket ${how})`)
      : this.#refusal ?? new ConnectError(`cannot connect to ${this.address.url} (WebSocket ${how}). ${ADVICE}`,
        { details: { url: this.address.url } })
    this.#lost()
  }

  #lost () {
    if (!this.#open) return
    this.#open = false
    if (this.#opening !== undefined) this.#opening.reject(this.#failure)
    else this.user.connectionLost(this.#failure)
  }
}

export function errorOf (frame) {
  return new BrokerError(frame.text || frame.code, { code: frame.code, details: frame.details, request: frame.request })
}
