// The programs of README.md, as they are written there, against a real broker.

import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'

import { Server } from './server.js'

const README = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const BLOCKS = [...README.matchAll(/^```js\n(.*?)^```/gms)].map((each) => each[1])
const CLIENT = new URL('../src/index.js', import.meta.url)

let server

before(async () => { server = await Server.start() })
after(async () => { await server.stop() })

const run = (program) => import('data:text/javascript,' + encodeURIComponent(
  program.replace("'fanlight'", `'${CLIENT}'`).replace('ws://127.0.0.1:7425', server.url)))

test('the first program runs to its end', () => run(BLOCKS[0]))

test('the worker acknowledges what comes to it', () => run(`
  import { connect } from 'fanlight'
  const client = await connect('ws://127.0.0.1:7425')
  const publishing = (async () => {
    while ((await client.publish('orders.1', 'x', { receipt: true })).routed === 0) await client.flush()
  })()
  ${BLOCKS[1].replace('order.ack()', 'order.ack(); break;')}
  await publishing
  await client.flush()
  const { waiting, acknowledged } = await client.queueRequest('info', { name: 'billing' })
  if (waiting !== 0 || acknowledged !== 1) throw new Error(JSON.stringify({ waiting, acknowledged }))
  await client.close()
`))
