// The frames of the native protocol as a table, and between bytes and objects (docs/native-protocol.md, chapters 2, 3).
//
//     encode(TYPE.PUBLISH, { topic: 'a.b', payload })  -->  bytes  -->  FrameReader.feed  -->  { type, name, topic, ... }
//
// Both directions are in it, although a client needs half: the tests compare every vector with it.

import { ProtocolError } from './errors.js'
import { decode, Encoder } from './msgpack.js'

export const VERSION = 1
export const FRAME_BYTES = 16 * 1024 * 1024 // largest frame that is accepted from a broker
const HEAD_BYTES = 4
const DELIVERY_EXTRA = 25 // bytes by which a frame of the broker may be longer than `limits.frame_bytes` (2, 3.7)
const PIECES_MAX = 1024 // of an unfinished frame: many small ones would take more memory than their bytes
const U32_MAX = 0xffffffff

const integer = (value) => (Number.isSafeInteger(value) && value >= 0) || (typeof value === 'bigint' && value >= 0n)
const u32 = (value) => typeof value === 'number' && integer(value) && value <= U32_MAX
const u64 = integer
const string = (value) => typeof value === 'string'
const binary = (value) => value instanceof Uint8Array
const topic = (value) => string(value) || binary(value)
const map = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !binary(value)
const boolean = (value) => typeof value === 'boolean'
const number = (value) => typeof value === 'number' || typeof value === 'bigint'
const delay = (value) => number(value) && value >= 0
const syntax = (value) => value === 0 || value === 1
const scalar = (value) => value === null || typeof value !== 'object' || binary(value)
const headers = (value) => map(value) && Object.entries(value).every(([name, item]) =>
  utf8Size(name) <= 255 && (Array.isArray(item) ? item.every(scalar) : scalar(item)))
const mark = (value) => Array.isArray(value) && value.length === 3 && string(value[0]) &&
  between(1, utf8Size(value[0]), 255) && u64(value[1]) && u64(value[2])
const publishOptions = (value) => {
  if (!map(value)) return false
  const times = [value.delay, value.deliver_at].filter((each) => each !== null && each !== undefined)
  return times.length < 2 && times.every((each) => delay(each) && each < Infinity)
}

const MEANINGS = new Map([
  [u32, 'an integer from 0 to 4294967295'], [u64, 'an integer from 0 up'], [string, 'a string'],
  [binary, 'a Uint8Array'], [topic, 'a string or a Uint8Array'], [map, 'an object'], [boolean, 'true or false'],
  [number, 'a number'], [delay, 'a number of seconds from 0 up'], [syntax, '0 or 1'],
  [headers, 'an object of names (255 bytes at most) to null, booleans, numbers, strings, Uint8Arrays or arrays of them'],
  [mark, 'an array of a producer (1 to 255 bytes), a batch and a sequence'],
  [publishOptions, 'an object with delay or deliver_at, in seconds']
])

const between = (least, value, most) => least <= value && value <= most
const utf8Size = (text) => text.length > 255 ? Infinity : new TextEncoder().encode(text).length

const REQUIRED = Symbol('required')
const ABSENT = Symbol('absent') // no field of the object if the frame has none

const field = (name, kind, fallback = REQUIRED) => ({ name, kind, fallback })
const REQUEST = field('request', u32, null)
const ANSWERED = field('request', u32)
const SUBSCRIPTION = field('subscription', u32)
const SEQUENCE = field('sequence', u64)
const TOKEN = field('token', u32, null)
const OPTIONS = field('options', map, null)
const CONTENT = [
  field('topic', topic), field('payload', binary), field('headers', headers, null), field('syntax', syntax, 0),
  field('reply', topic, null)
]
const FLAG = (name) => field(name, boolean, false)

const SPECS = {
  HELLO: [1, field('version', u32), field('options', map)],
  WELCOME: [2, field('version', u32), field('info', map)],
  PUBLISH: [3, REQUEST, ...CONTENT, field('mark', mark, null), field('options', publishOptions, null)],
  MESSAGE: [4, SUBSCRIPTION, ...CONTENT, field('offset', u64, ABSENT), field('timestamp', u64, ABSENT)],
  RECEIPT: [5, ANSWERED, field('routed', u32), field('offset', u64, null), FLAG('repeated'), FLAG('delayed'),
    field('id', u64, null)],
  SUBSCRIBE: [6, REQUEST, SUBSCRIPTION, field('filter', topic), OPTIONS],
  OK: [7, ANSWERED, field('result', map, null)],
  UNSUBSCRIBE: [8, REQUEST, SUBSCRIPTION, field('after', u64, 0)],
  ENDED: [9, SUBSCRIPTION, field('reason', string), field('delivered', u64), field('dropped', u64)],
  CREDIT: [10, SUBSCRIPTION, field('messages', u32)],
  PING: [11, TOKEN],
  PONG: [12, TOKEN],
  ERROR: [13, REQUEST, field('code', string), field('text', string), field('details', map, null)],
  GOODBYE: [14, field('reason', string), field('text', string, null)],
  HELD: [15, field('held', boolean), field('seconds', number, null)],
  DELIVERY: [32, SUBSCRIPTION, SEQUENCE, field('attempt', u32), ...CONTENT],
  ACK: [33, SUBSCRIPTION, SEQUENCE, OPTIONS],
  NACK: [34, SUBSCRIPTION, SEQUENCE, field('delay', delay, null)],
  TERM: [35, SUBSCRIPTION, SEQUENCE, field('reason', string, null)],
  IN_PROGRESS: [36, SUBSCRIPTION, SEQUENCE],
  CONSUMER: [37, REQUEST, SUBSCRIPTION, OPTIONS],
  CONSUMER_INFO: [38, SUBSCRIPTION, field('info', map)],
  QUEUE: [39, REQUEST, field('verb', string), field('arguments', map, null)],
  REPLAY: [48, REQUEST, SUBSCRIPTION, field('filter', topic), OPTIONS],
  REPLAY_END: [49, SUBSCRIPTION, field('offset', u64), field('epoch', u32)]
}

/** The number of each frame type, by name. */
export const TYPE = Object.freeze(Object.fromEntries(Object.entries(SPECS).map(([name, [type]]) => [name, type])))

const BY_TYPE = new Map(Object.entries(SPECS).map(([name, [type, ...fields]]) => [type, { name, fields }]))

const encoder = new Encoder()

/** A whole frame; fields that are missing have their default. Throws TypeError for a value that the broker would refuse. */
export function encode (type, values) {
  const { name, fields } = BY_TYPE.get(type)
  let last = fields.length
  while (last > 0 && isDefault(fields[last - 1], values[fields[last - 1].name])) last--
  encoder.reset()
  const at = encoder.reserve(HEAD_BYTES)
  encoder.array(1 + last)
  encoder.write(type)
  for (let n = 0; n < last; n++) {
    const value = values[fields[n].name]
    if (isDefault(fields[n], value)) {
      encoder.write(null)
    } else {
      if (!fields[n].kind(value)) throw new TypeError(`${name}: ${fields[n].name} must be ${MEANINGS.get(fields[n].kind)}`)
      encoder.write(value)
    }
  }
  encoder.setUint32(at, encoder.length - HEAD_BYTES)
  return encoder.take()
}

function isDefault ({ fallback }, value) {
  return fallback !== REQUIRED && (value === undefined || value === null || value === fallback)
}

/** What a frame's body says; null for a type that is not known, which a client ignores. Throws ProtocolError. */
export function decodeBody (body) {
  if (body.length < 2 || (body[0] >= 0x90 && body[0] < 0xa0 && body[1] > 0x7f)) malformed(body)
  const array = decode(body)
  if (!Array.isArray(array) || !between(0, array[0], 127)) malformed(body)
  const spec = BY_TYPE.get(array[0])
  if (spec === undefined) return null
  const frame = { type: array[0], name: spec.name }
  for (let n = 0; n < spec.fields.length; n++) {
    const { name, kind, fallback } = spec.fields[n]
    const value = array[n + 1]
    if (value !== undefined && value !== null) {
      if (!kind(value)) throw new ProtocolError(`${spec.name} has a ${name} that is none`)
      frame[name] = value
    } else if (fallback === REQUIRED) {
      throw new ProtocolError(`${spec.name} has no ${name}`)
    } else if (fallback !== ABSENT) {
      frame[name] = fallback
    }
  }
  return frame
}

function malformed (body) {
  throw new ProtocolError(`a frame of ${body.length} bytes is not an array that begins with a type`)
}

/** Finds the frames in a stream of bytes, however it is cut. Holds one unfinished frame, of `limit` bytes at most. */
export class FrameReader {
  #rest = new Uint8Array(0)
  #pieces = [] // behind #rest: put together when a frame is whole
  #size = 0

  constructor (limit = FRAME_BYTES) {
    this.limit = limit
  }

  /** The frames that are whole by now, each with its `size` in bytes. Throws ProtocolError at the wrong one. */
  * feed (bytes) {
    this.#pieces.push(bytes)
    this.#size += bytes.length
    if (this.#size < this.#wanted()) {
      if (this.#pieces.length < PIECES_MAX) return
      this.#rest = this.#joined()
      this.#pieces = []
      return
    }
    let all = this.#joined()
    try {
      while (all.length >= HEAD_BYTES) {
        const length = length32(all)
        if (length < 1) throw new ProtocolError('a frame of 0 bytes')
        if (length > this.limit + DELIVERY_EXTRA) {
          throw new ProtocolError(`a frame of ${length} bytes; at most ${this.limit} are accepted (frameBytes)`)
        }
        if (all.length < HEAD_BYTES + length) break
        const body = all.subarray(HEAD_BYTES, HEAD_BYTES + length)
        all = all.subarray(HEAD_BYTES + length)
        const frame = decodeBody(body)
        if (frame !== null) {
          frame.size = length
          yield frame
        }
      }
    } finally {
      this.#rest = all
      this.#pieces = []
      this.#size = all.length
    }
  }

  /** Bytes that the frame under way has in all; HEAD_BYTES while its length is not known. */
  #wanted () {
    return this.#rest.length < HEAD_BYTES ? HEAD_BYTES : HEAD_BYTES + Math.min(length32(this.#rest), this.limit)
  }

  #joined () {
    if (this.#rest.length === 0 && this.#pieces.length === 1) return this.#pieces[0]
    const all = new Uint8Array(this.#size)
    let at = 0
    for (const piece of [this.#rest, ...this.#pieces]) {
      all.set(piece, at)
      at += piece.length
    }
    return all
  }
}

const length32 = (bytes) => ((bytes[0] << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3]) >>> 0
