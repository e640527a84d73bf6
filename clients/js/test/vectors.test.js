// The frames against docs/native-protocol-vectors.json: whole, byte by byte, and with a tail.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { ProtocolError } from '../src/errors.js'
import { encode, FrameReader, TYPE } from '../src/frames.js'

const VECTORS = JSON.parse(readFileSync(new URL('../../../docs/native-protocol-vectors.json', import.meta.url)))
const PING = octets('00000003920b07')

function octets (hex) {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

/** Octets as the vectors write them. */
function plain (value) {
  if (typeof value === 'bigint') return Number(value) // as JSON.parse has read it
  if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') }
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
}

function unhexed (value) {
  if (Array.isArray(value)) return value.map(unhexed)
  if (value === null || typeof value !== 'object') return value
  if (Object.keys(value).join() === 'hex') return octets(value.hex)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unhexed(item)]))
}

function meant (vector) {
  return vector.name === 'publish_empty_headers' ? { ...vector.fields, headers: {} } : vector.fields
}

function said (frame) {
  const { type, name, size, ...fields } = frame
  return plain(fields)
}

test('every frame type has a vector', () => {
  assert.deepEqual(new Set(VECTORS.frames.map((each) => each.type)), new Set(Object.values(TYPE)))
})

for (const vector of VECTORS.frames) {
  test(`${vector.name} means what its vector says`, () => {
    const bytes = octets(vector.bytes)
    const [frame, ...more] = new FrameReader().feed(bytes)
    assert.deepEqual(more, [])
    assert.equal(frame.name, vector.type_name)
    assert.equal(frame.size, bytes.length - 4)
    assert.deepEqual(said(frame), meant(vector))
  })

  test(`${vector.name} may come byte by byte, and with others behind it`, () => {
    const reader = new FrameReader()
    const stream = [...octets(vector.bytes), ...PING, ...PING.subarray(0, 5)]
    const frames = stream.flatMap((byte) => [...reader.feed(Uint8Array.of(byte))])
    assert.deepEqual(frames.map(said), [meant(vector), { token: 7 }])
    assert.deepEqual([...reader.feed(PING.subarray(5))].map(said), [{ token: 7 }])
  })

  if (vector.canonical) {
    test(`${vector.name} is encoded in the canonical bytes`, () => {
      const made = encode(vector.type, unhexed(vector.fields))
      assert.equal(Buffer.from(made).toString('hex'), vector.bytes)
    })
  }
}

for (const vector of VECTORS.invalid_from_broker) {
  test(`${vector.name} is refused, and what came before it is not lost`, () => {
    const frames = []
    assert.throws(() => {
      for (const frame of new FrameReader().feed(Uint8Array.from([...PING, ...octets(vector.bytes)]))) frames.push(frame)
    }, ProtocolError)
    assert.deepEqual(frames.map(said), [{ token: 7 }])
  })
}

test('a large frame may come in many small pieces', () => {
  const payload = new Uint8Array(5000).fill(7)
  const bytes = encode(TYPE.PUBLISH, { topic: 'a', payload })
  const reader = new FrameReader()
  const frames = [...bytes].flatMap((byte) => [...reader.feed(Uint8Array.of(byte))])
  assert.deepEqual(frames.map((each) => each.payload), [payload])
})

test('a frame that is too large is refused by its head', () => {
  assert.throws(() => [...new FrameReader(1000).feed(octets('00000fff'))], ProtocolError)
})
