// The part of MessagePack that the native protocol uses: no extension types, maps with text as keys.
// docs/decisions/0028-javascript-client.md says why this is not a library.
//
//     nil             null                       str     string, which must be valid Unicode
//     bool            boolean                    bin     Uint8Array
//     int, uint       number; bigint above 2**53-1   array   Array
//     float           number                     map     plain object
//
// The encoder uses the shortest form of everything. A number without a fraction is written as an integer.

import { ProtocolError } from './errors.js'

export const NESTING_MAX = 8 // section 2 of docs/native-protocol.md

const TEXT = new TextEncoder()
const STRICT_TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const LONE_SURROGATE = /\p{Surrogate}/u

export class Encoder {
  #bytes = new Uint8Array(256)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  /** What was written since the last call, copied. */
  take () {
    const taken = this.#bytes.slice(0, this.#length)
    this.#length = 0
    return taken
  }

  /** Forget what was written, after an error. */
  reset () {
    this.#length = 0
  }

  get length () {
    return this.#length
  }

  /** Room for a number that is known later; returns its place. */
  reserve (size) {
    this.#grow(size)
    const at = this.#length
    this.#length += size
    return at
  }

  setUint32 (at, number) {
    this.#view.setUint32(at, number)
  }

  /** Throws TypeError for a value that has no form here. */
  write (value) {
    switch (typeof value) {
      case 'string': return this.#text(value)
      case 'number': return Number.isSafeInteger(value) ? this.#integer(value) : this.#float(value)
      case 'boolean': return this.#byte(value ? 0xc3 : 0xc2)
      case 'undefined': return this.#byte(0xc0)
      case 'bigint': return this.#large(value)
      case 'object': return this.#object(value)
      default: throw new TypeError(`a ${typeof value} cannot be sent`)
    }
  }

  array (length) {
    if (length < 16) this.#byte(0x90 | length)
    else this.#head(length, 0xdc, 0xdd)
  }

  #object (value) {
    if (value === null) return this.#byte(0xc0)
    if (value instanceof Uint8Array) return this.#binary(value)
    if (Array.isArray(value)) {
      this.array(value.length)
      for (const item of value) this.write(item)
      return
    }
    const entries = value instanceof Map ? [...value] : Object.entries(value)
    if (entries.length < 16) this.#byte(0x80 | entries.length)
    else this.#head(entries.length, 0xde, 0xdf)
    for (const [key, item] of entries) {
      if (typeof key !== 'string') throw new TypeError('the keys of a map are text')
      this.#text(key)
      this.write(item)
    }
  }

  #text (text) {
    if (LONE_SURROGATE.test(text)) throw new TypeError('a text has half of a surrogate pair, which has no UTF-8')
    this.#grow(3 * text.length + 5)
    const size = text.length < 11 ? short(text) : -1
    if (size >= 0) { // short and ASCII: without a copy by TextEncoder
      this.#bytes[this.#length++] = 0xa0 | size
      for (let at = 0; at < size; at++) this.#bytes[this.#length++] = text.charCodeAt(at)
      return
    }
    const bytes = TEXT.encode(text)
    if (bytes.length < 32) this.#byte(0xa0 | bytes.length)
    else if (bytes.length < 256) { this.#byte(0xd9); this.#byte(bytes.length) } else this.#head(bytes.length, 0xda, 0xdb)
    this.#copy(bytes)
  }

  #binary (bytes) {
    if (bytes.length < 256) { this.#byte(0xc4); this.#byte(bytes.length) } else this.#head(bytes.length, 0xc5, 0xc6)
    this.#copy(bytes)
  }

  #integer (number) {
    if (number >= 0) {
      if (number < 0x80) return this.#byte(number)
      if (number < 0x100) { this.#byte(0xcc); return this.#byte(number) }
      if (number <= 0xffffffff) return this.#head(number, 0xcd, 0xce)
    } else {
      if (number >= -32) return this.#byte(number & 0xff)
      if (number >= -0x80) { this.#byte(0xd0); return this.#byte(number & 0xff) }
      if (number >= -0x80000000) return this.#head(number, 0xd1, 0xd2, -0x8000)
    }
    this.#large(BigInt(number))
  }

  #large (number) {
    if (number >= 0n ? number >= 2n ** 64n : number < -(2n ** 63n)) throw new TypeError(`${number} has more than 64 bits`)
    this.#grow(9)
    this.#bytes[this.#length] = number >= 0n ? 0xcf : 0xd3
    this.#view.setBigUint64(this.#length + 1, BigInt.asUintN(64, number))
    this.#length += 9
  }

  #float (number) {
    this.#grow(9)
    this.#bytes[this.#length] = 0xcb
    this.#view.setFloat64(this.#length + 1, number)
    this.#length += 9
  }

  /** A type with a number of 16 bits behind it if that is enough, or one of 32. */
  #head (number, short, long, least = 0) {
    this.#grow(5)
    if (least <= number && number < 0x10000) {
      this.#bytes[this.#length] = short
      this.#view.setUint16(this.#length + 1, number & 0xffff)
      this.#length += 3
    } else {
      this.#bytes[this.#length] = long
      this.#view.setUint32(this.#length + 1, number >>> 0)
      this.#length += 5
    }
  }

  #byte (byte) {
    this.#grow(1)
    this.#bytes[this.#length++] = byte
  }

  #copy (bytes) {
    this.#grow(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  #grow (size) {
    if (this.#length + size <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + size))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }
}

/** The length of a text of ASCII; -1 if it is another. */
function short (text) {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return -1
  return text.length
}

/** The one value that `bytes` hold. Octets in it are copies. Throws ProtocolError. */
export function decode (bytes) {
  const decoder = new Decoder(bytes)
  const value = decoder.value(1)
  if (decoder.at !== bytes.length) throw new ProtocolError(`${bytes.length - decoder.at} bytes behind the end of a frame`)
  return value
}

class Decoder {
  constructor (bytes) {
    this.at = 0
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  value (depth) {
    const type = this.bytes[this.take(1)]
    if (type < 0x80) return type
    if (type >= 0xe0) return type - 0x100
    if (type < 0x90) return this.map(type & 0x0f, depth)
    if (type < 0xa0) return this.array(type & 0x0f, depth)
    if (type < 0xc0) return this.text(type & 0x1f)
    switch (type) {
      case 0xc0: return null
      case 0xc2: return false
      case 0xc3: return true
      case 0xc4: return this.binary(this.uint8())
      case 0xc5: return this.binary(this.uint16())
      case 0xc6: return this.binary(this.uint32())
      case 0xca: return this.view.getFloat32(this.take(4))
      case 0xcb: return this.view.getFloat64(this.take(8))
      case 0xcc: return this.uint8()
      case 0xcd: return this.uint16()
      case 0xce: return this.uint32()
      case 0xcf: return exact(this.view.getBigUint64(this.take(8)))
      case 0xd0: return this.view.getInt8(this.take(1))
      case 0xd1: return this.view.getInt16(this.take(2))
      case 0xd2: return this.view.getInt32(this.take(4))
      case 0xd3: return exact(this.view.getBigInt64(this.take(8)))
      case 0xd9: return this.text(this.uint8())
      case 0xda: return this.text(this.uint16())
      case 0xdb: return this.text(this.uint32())
      case 0xdc: return this.array(this.uint16(), depth)
      case 0xdd: return this.array(this.uint32(), depth)
      case 0xde: return this.map(this.uint16(), depth)
      case 0xdf: return this.map(this.uint32(), depth)
      default: throw new ProtocolError(`the type 0x${type.toString(16)} of MessagePack is not used`)
    }
  }

  uint8 () { return this.bytes[this.take(1)] }
  uint16 () { return this.view.getUint16(this.take(2)) }
  uint32 () { return this.view.getUint32(this.take(4)) }

  /** The place of the next `size` bytes. */
  take (size) {
    const at = this.at
    if (size > this.bytes.length - at) throw new ProtocolError('a frame ends within a value')
    this.at = at + size
    return at
  }

  binary (size) {
    const at = this.take(size)
    return this.bytes.slice(at, at + size)
  }

  text (size) {
    const at = this.take(size)
    try {
      return STRICT_TEXT.decode(this.bytes.subarray(at, at + size))
    } catch {
      throw new ProtocolError('a text is not valid UTF-8')
    }
  }

  array (length, depth) {
    this.nested(length, depth)
    const items = []
    for (let n = 0; n < length; n++) items.push(this.value(depth + 1))
    return items
  }

  map (length, depth) {
    this.nested(2 * length, depth)
    const found = {}
    for (let n = 0; n < length; n++) {
      const key = this.value(depth + 1)
      if (typeof key !== 'string') throw new ProtocolError('a key of a map is no text')
      const value = this.value(depth + 1)
      // Assigned, this one name would be no key.
      if (key === '__proto__') Object.defineProperty(found, key, { value, enumerable: true, configurable: true, writable: true })
      else found[key] = value
    }
    return found
  }

  /** Every item has a byte at least: a length cannot claim more than there is. */
  nested (items, depth) {
    if (depth > NESTING_MAX) throw new ProtocolError(`a frame is nested deeper than ${NESTING_MAX} levels`)
    if (items > this.bytes.length - this.at) throw new ProtocolError('a frame ends within a value')
  }
}

/** A number where it is one without loss, else a bigint. */
function exact (large) {
  const number = Number(large)
  return Number.isSafeInteger(number) ? number : large
}
