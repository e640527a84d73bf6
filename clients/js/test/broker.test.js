// The client and a real broker, over WebSocket.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'

import { BrokerError, connect, ConnectError, NoResponders, ProtocolError, SubscriptionEnded, SubscriptionOverflow } from '../src/index.js'
import { Server } from './server.js'

const CERTIFICATE = process.env.FANLIGHT_TEST_CERTIFICATE
let server, folder
const clients = []
const servers = [] // of one test

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fanlight-js-'))
  server = await Server.start({ data: join(folder, 'data') })
})

after(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

afterEach(async () => {
  await Promise.all(clients.splice(0).map((each) => each.close()))
  await Promise.all(servers.splice(0).map((each) => each.stop()))
})

async function client (options = {}, url = server.url) {
  const made = await connect(url, { timeoutSeconds: 240, connectSeconds: 240, ...options }) // on a machine that is busy
  clients.push(made)
  return made
}

/** A broker for one test. */
async function start (settings) {
  const made = await Server.start(settings)
  servers.push(made)
  return made
}

/** The first `count` messages. */
async function taken (subscription, count) {
  const found = []
  while (found.length < count) found.push(await subscription.next())
  return found
}

const texts = (messages) => messages.map((each) => each.text())

test('a message is published and comes to its subscriber as it was', async () => {
  const here = await client({ name: 'desk-7' })
  assert.equal(here.info.client, 'desk-7')
  const quotes = await here.subscribe('plain.#')
  const headers = { 'content-type': 'text/plain', price: 189.95, count: 300, tags: ['a', 1, null], raw: Uint8Array.of(1, 2), ok: true }
  const receipt = await here.publish('plain.börse', 'grün', { headers, receipt: true })
  assert.deepEqual(receipt, { routed: 1, repeated: false, delayed: false, id: null })
  const message = await quotes.next()
  assert.equal(message.topic, 'plain.börse')
  assert.deepEqual(message.words, ['plain', 'börse'])
  assert.equal(message.text(), 'grün')
  assert.deepEqual(message.headers, headers)
  assert.equal(message.reply, null)
})

test('what is no text and no bytes is JSON', async () => {
  const here = await client()
  const all = await here.subscribe('json')
  await here.publish('json', { price: 1 })
  await here.publish('json', Uint8Array.of(255))
  await here.publish('json')
  const [object, bytes, empty] = await taken(all, 3)
  assert.deepEqual(object.json(), { price: 1 })
  assert.equal(object.headers['content-type'], 'application/json')
  assert.deepEqual(bytes.payload, Uint8Array.of(255))
  assert.equal(empty.payload.length, 0)
})

test('both syntaxes reach each other', async () => {
  const here = await client()
  const mqtt = await here.subscribe('both/+/x', { syntax: 'mqtt' })
  await here.publish('both.1.x', 'dots')
  await here.publish('both/2/x', 'slashes', { syntax: 'mqtt' })
  const messages = await taken(mqtt, 2)
  assert.deepEqual(messages.map((each) => [each.topic, each.syntax, each.words]),
    [['both.1.x', 'amqp', ['both', '1', 'x']], ['both/2/x', 'mqtt', ['both', '2', 'x']]])
})

test('a selector, a group, no echo and a number of messages', async () => {
  const here = await client()
  const there = await client()
  const dear = await here.subscribe('options', { where: 'price > 100' })
  const mapped = await here.subscribe('options', { where: { price: [{ numeric: ['>', 100] }] } })
  const members = [await here.subscribe('options', { group: 'g' }), await there.subscribe('options', { group: 'g' })]
  const others = await here.subscribe('options', { noEcho: true })
  const two = await here.subscribe('options', { after: 2 })
  for (const price of [1, 101, 102]) await here.publish('options', String(price), { headers: { price } })
  await there.publish('options', 'other')
  await Promise.all([here.flush(), there.flush()])
  await here.flush() // what `there` published was routed before its PONG
  assert.deepEqual(texts(await taken(dear, 2)), ['101', '102'])
  assert.deepEqual(texts(await taken(mapped, 2)), ['101', '102'])
  assert.deepEqual(texts(await taken(others, 1)), ['other'])
  const seen = []
  for await (const message of two) seen.push(message.text())
  assert.deepEqual(seen, ['1', '101'])
  assert.equal(members[0].stats.delivered + members[1].stats.delivered, 4)
})

test('a subscriber that reads slowly is held up at the broker by its credit', async () => {
  const here = await client()
  const few = await here.subscribe('credit', { credit: 4, pendingMessages: 4 })
  for (let n = 0; n < 12; n++) await here.publish('credit', String(n))
  await here.flush()
  assert.deepEqual(few.pending.messages, 4)
  assert.deepEqual(texts(await taken(few, 12)), [...Array(12).keys()].map(String))
  assert.equal(few.stats.dropped, 0)
})

test('a queue that is full drops and counts by its policy', async () => {
  const here = await client()
  const newest = await here.subscribe('full', { overflow: 'drop_newest', pendingMessages: 2 })
  const oldest = await here.subscribe('full', { overflow: 'drop_oldest', pendingMessages: 2 })
  const error = await here.subscribe('full', { overflow: 'error', pendingMessages: 2 })
  const bytes = await here.subscribe('full', { pendingBytes: 40 })
  for (let n = 0; n < 5; n++) await here.publish('full', String(n))
  await here.flush()
  assert.deepEqual(texts(await taken(newest, 2)), ['0', '1'])
  assert.deepEqual(texts(await taken(oldest, 2)), ['3', '4'])
  await assert.rejects(error.next(), (reason) => reason instanceof SubscriptionOverflow && reason.details.messages === 2)
  assert.deepEqual(texts(await taken(error, 2)), ['0', '1'])
  assert.deepEqual(texts(await taken(bytes, 2)), ['0', '1'])
  assert.deepEqual([newest, oldest, error, bytes].map((each) => each.stats.dropped), [3, 3, 3, 3])
  assert.equal(here.stats.dropped, 12)
})

test('requests are answered, in both syntaxes, and at once if nobody is there', async () => {
  const there = await client()
  const here = await client()
  const asked = await there.subscribe('square.*')
  const serving = (async () => {
    for await (const message of asked) await message.respond(String(Number(message.text()) ** 2))
  })()
  const answers = await Promise.all([2, 3, 4].map((n) => here.request('square.n', String(n), { headers: { 'correlation-id': `c${n}` } })))
  assert.deepEqual(texts(answers), ['4', '9', '16'])
  assert.deepEqual(answers.map((each) => each.headers['correlation-id']), ['c2', 'c3', 'c4'])
  assert.equal((await here.request('square/n', '5', { syntax: 'mqtt' })).text(), '25')
  await assert.rejects(here.request('square', '5'), NoResponders)
  await asked.unsubscribe()
  await serving
})

test('a queue gives a message again until it is acknowledged', async () => {
  const here = await client()
  const jobs = await here.subscribe('jobs.#', { queue: 'workers', prefetch: 2 })
  for (const text of ['one', 'two', 'three']) await here.publish('jobs.a', text, { receipt: true })
  const one = await jobs.next()
  assert.deepEqual([one.text(), one.attempt, one.redelivered], ['one', 1, false])
  assert.equal(one.nack(), true)
  assert.equal(one.ack(), false) // it is settled
  const rest = []
  while (rest.length < 3) {
    const message = await jobs.next()
    rest.push([message.text(), message.attempt])
    assert.equal(message.inProgress(), true)
    assert.equal(message.ack(), true)
  }
  assert.deepEqual(rest.sort(), [['one', 2], ['three', 1], ['two', 1]])
  await here.flush()
  assert.equal((await here.queueRequest('info', { name: 'workers' })).acknowledged, 3)
  await jobs.pause()
  await here.publish('jobs.b', 'later', { receipt: true })
  await jobs.resume()
  const later = await jobs.next()
  later.term('no use')
  await here.flush()
  assert.equal((await here.queueRequest('info', { name: 'workers' })).discarded, 1)
})

test('a delayed message can be cancelled', async () => {
  const here = await client()
  const { delayed, id } = await here.publish('later', 'x', { delaySeconds: 3600, receipt: true })
  assert.equal(delayed, true)
  assert.equal(await here.cancel(id), true)
  assert.equal(await here.cancel(id), false)
})

test('after a restart of the broker everything goes on', async () => {
  let own = await start({ data: join(folder, 'restarted') })
  const losses = []
  const { promise: again, resolve } = withResolvers()
  const here = await client({ reconnect: { initial: 0.01 }, onDisconnect: (error) => losses.push(error), onReconnect: resolve }, own.url)
  const plain = await here.subscribe('stay.#', { where: 'n > 0' })
  const jobs = await here.subscribe('work.#', { queue: 'kept' })
  const asked = await here.subscribe('ask')
  await here.publish('work.1', 'job', { receipt: true })
  const early = await jobs.next()
  await own.stop()
  await here.publish('stay.unsent', 'while away', { headers: { n: 1 } }) // waits in the outbox
  const waiting = here.publish('stay.receipt', 'receipt', { headers: { n: 1 }, receipt: true }) // waits for a connection
  own = await own.restart()
  servers.push(own)
  await again
  assert.equal(losses[0].code, 'shutting_down')
  assert.deepEqual(texts(await taken(plain, 2)).sort(), ['receipt', 'while away'])
  assert.equal((await waiting).routed, 1)
  assert.equal(early.ack(), false) // it came by a connection that is lost
  const late = await jobs.next()
  assert.deepEqual([late.text(), late.redelivered], ['job', true])
  assert.equal(late.ack(), true)
  const serving = asked.next().then((message) => message.respond('answered'))
  assert.equal((await here.request('ask')).text(), 'answered')
  await serving
  assert.equal(here.stats.reconnects, 1)
})

test('a broker that is killed is found again, and the second of two addresses, too', async () => {
  const own = await start()
  const { promise: again, resolve } = withResolvers()
  const here = await client({ reconnect: { initial: 0.01 }, onReconnect: resolve }, [own.url, server.url])
  const all = await here.subscribe('moved')
  await own.stop('SIGKILL')
  await again
  await here.publish('moved', 'here', { receipt: true })
  assert.equal((await all.next()).text(), 'here')
  assert.equal(here.url, new URL(server.url).href)
})

test('without a reconnect a loss ends everything, with the reason', async () => {
  const own = await start()
  const here = await client({ reconnect: false }, own.url)
  const all = await here.subscribe('a')
  const next = assert.rejects(all.next(), { code: 'shutting_down' })
  await own.stop()
  await next
  assert.equal(here.closed, true)
  await assert.rejects(here.publish('a'), { code: 'shutting_down' })
  await assert.rejects(all.next(), { code: 'shutting_down' })
})

test('a broker that stands still is noticed by its silence', async () => {
  const own = await start()
  const here = await client({ reconnect: false, pingSeconds: 0.5 }, own.url)
  const all = await here.subscribe('a')
  own.signal('SIGSTOP')
  await assert.rejects(all.next(), { code: 'timeout' })
  own.signal('SIGCONT')
})

test('users, passwords and what they must not do', async () => {
  const file = join(folder, 'permissions.toml')
  await writeFile(file, "[[allow]]\npublish = 'open/#'\nsubscribe = '#'\n")
  process.env.FANLIGHT_PASSWORD = 'sesame'
  const own = await start({ permissions: file }).finally(() => { delete process.env.FANLIGHT_PASSWORD })
  const wrong = connect(own.url, { user: 'anna', password: 'sesam' })
  await assert.rejects(wrong, (error) => error instanceof BrokerError && error.code === 'authentication_failed')
  const refused = []
  const here = await client({ onError: (error) => refused.push(error.code) }, own.url.replace('//', '//anna:sesame@'))
  await assert.rejects(here.publish('shut.x', '', { receipt: true }), { code: 'not_permitted' })
  await here.publish('shut.x', '')
  await here.flush()
  assert.deepEqual(refused, ['not_permitted'])
})

test('what the broker would close the connection for is refused here', async () => {
  const here = await client()
  await assert.rejects(here.publish('a', '', { headers: { $x: 1 } }), /begin with \$/)
  await assert.rejects(here.publish('a', '', { headers: { x: { y: 1 } } }), /PUBLISH: headers must be an object/)
  await assert.rejects(here.publish('a\ud800', ''), /surrogate/)
  await assert.rejects(here.publish('a', new Uint8Array(2 ** 20)), { code: 'frame_too_large' })
  await assert.rejects(here.publish('a', '', { heders: {} }), /there is no option heders; there are headers/)
  await assert.rejects(here.subscribe('a', { syntax: 'x' }), /syntax is 'amqp'/)
  await assert.rejects(here.subscribe('a+/b', { syntax: 'mqtt' }), { code: 'invalid_filter' })
  await assert.rejects(here.subscribe('a', { where: 'price >' }), { code: 'invalid_selector' })
  await assert.rejects(here.replay('a'), { code: 'unsupported' })
  assert.equal((await here.publish('a', '', { receipt: true })).routed, 0) // it is the same connection
  assert.equal(here.stats.reconnects, 0)
})

test('who cannot connect hears what to do', async () => {
  const http = `ws://127.0.0.1:${server.ports.http}`
  await assert.rejects(connect(http), (error) => error instanceof ConnectError && /native_websocket_port/.test(error.message))
  await assert.rejects(connect(`ws://127.0.0.1:${server.ports.mqtt_websocket}`), ConnectError)
  await assert.rejects(connect('fanlight://127.0.0.1'), /ws:\/\/127.0.0.1:7425/)
  await assert.rejects(connect('http://u:secret@x y'), (error) => !error.message.includes('secret'))
  await assert.rejects(connect(server.url, { WebSocket: TextSocket }), ProtocolError)
})

test('leaving the loop ends the subscription, and closing the client all of them', async () => {
  const here = await client()
  const left = await here.subscribe('left')
  const closed = await here.subscribe('left')
  await here.publish('left', '1')
  for await (const message of left) {
    assert.equal(message.text(), '1')
    break
  }
  assert.ok(left.ended instanceof SubscriptionEnded)
  assert.equal((await here.publish('left', '2', { receipt: true })).routed, 1)
  await here.close()
  assert.deepEqual(texts(await taken(closed, 2)), ['1', '2']) // what has come can still be taken
  await assert.rejects(closed.next(), SubscriptionEnded)
  await assert.rejects(here.publish('left'), { code: 'closed' })
})

test('waiting for a message can be given up', async () => {
  const here = await client()
  const all = await here.subscribe('patience')
  const giver = new AbortController()
  const waiting = all.next({ signal: giver.signal })
  giver.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  await here.publish('patience', 'x')
  assert.equal((await all.next()).text(), 'x') // nothing was lost to the one who gave up
})

test('thirty thousand messages come in order and complete', async () => {
  const here = await client()
  const all = await here.subscribe('many')
  const publishing = (async () => {
    for (let n = 0; n < 30_000; n++) await here.publish('many', String(n))
  })()
  for (let n = 0; n < 30_000; n++) assert.equal((await all.next()).text(), String(n))
  await publishing
})

for (const session of JSON.parse(readFileSync(new URL('../../../docs/native-protocol-vectors.json', import.meta.url))).sessions) {
  test(`the session ${session.name} of the vectors goes over a WebSocket, cut anywhere`, async () => {
    const sent = Buffer.concat(session.steps.filter((each) => each.from === 'client').map((each) => Buffer.from(each.bytes, 'hex')))
    const socket = new WebSocket(server.url, 'fanlight')
    socket.binaryType = 'arraybuffer'
    const came = []
    await new Promise((resolve, reject) => {
      socket.onopen = () => { for (let at = 0; at < sent.length; at += 7) socket.send(sent.subarray(at, at + 7)) }
      socket.onmessage = (event) => came.push(Buffer.from(event.data))
      socket.onclose = resolve
      socket.onerror = reject
      if (session.steps.at(-1).type_name !== 'GOODBYE') reject(new Error('a session of the vectors ends with GOODBYE'))
    })
    const types = []
    for (let rest = Buffer.concat(came); rest.length > 0; rest = rest.subarray(4 + rest.readUInt32BE())) types.push(rest[5])
    const expected = session.steps.filter((each) => each.from === 'broker').map((each) => Buffer.from(each.bytes, 'hex')[5])
    assert.deepEqual(types.sort(), expected.sort())
  })
}

test('by TLS', { skip: CERTIFICATE === undefined && 'FANLIGHT_TEST_CERTIFICATE names no certificate' }, async () => {
  const own = await start({ 'tls-certificate': CERTIFICATE, ...Object.fromEntries(
    ['native', 'native-websocket', 'mqtt', 'mqtt-websocket', 'amqp', 'http'].map((name) => [`${name}-tls-port`, 0])) })
  const here = await client({}, `wss://localhost:${own.ports.native_websocket_tls}`)
  const all = await here.subscribe('secret')
  await here.publish('secret', 'x')
  assert.equal((await all.next()).text(), 'x')
})

test('a replay begins with what is archived, and goes on with what is published', async () => {
  const own = await start({ archive: join(folder, 'archive'), 'archive-receipts': true, 'archive-durability': 'batch' })
  const here = await client({}, own.url)
  for (const n of [1, 2, 3]) await here.publish('kept.x', String(n), { receipt: true })
  const all = await here.replay('kept.#', { offset: 1 })
  assert.deepEqual((await taken(all, 2)).map((each) => [each.text(), each.offset, each.timestamp instanceof Date]),
    [['2', 1, true], ['3', 2, true]])
  await here.publish('kept.x', '4', { receipt: true })
  const live = await all.next()
  assert.equal(live.text(), '4')
  assert.equal(all.live, live.offset === undefined)
  const past = await here.replay('kept.#', { pastOnly: true, since: new Date(0), where: 'true' })
  const seen = []
  for await (const message of past) seen.push(message.text())
  assert.deepEqual(seen, ['1', '2', '3', '4'])
})

/** A server that answers with text. */
class TextSocket {
  bufferedAmount = 0
  constructor () { queueMicrotask(() => this.onmessage({ data: 'hello' })) }
  close () {}
  send () {}
}

function withResolvers () {
  let resolve
  const promise = new Promise((given) => { resolve = given })
  return { promise, resolve }
}
