// The client of the Fanlight broker for browsers and Node.js, by WebSocket (clients/js/README.md).
//
//     import { connect } from 'fanlight'
//
//     const client = await connect('ws://127.0.0.1:7425')
//     const quotes = await client.subscribe('stock.#', { where: 'price > 100' })
//     for await (const quote of quotes) console.log(quote.topic, quote.text())

import { parseAddress } from './address.js'
import { Client } from './client.js'
import { connectOptions } from './options.js'

/**
 * An open client. `urls`: ws://[user:password@]host:port, wss:// by TLS, or an array of them, which are tried in turn.
 * Rejects with ConnectError, with RequestTimeout, or with what the broker answered.
 */
export async function connect (urls, options = {}) {
  const addresses = (Array.isArray(urls) ? urls : [urls]).map(parseAddress)
  if (addresses.length === 0) throw new TypeError('connect needs an address, such as ws://127.0.0.1:7425')
  const client = new Client(addresses, connectOptions(options))
  await client.open()
  return client
}

export { Client } from './client.js'
export * from './errors.js'
export { Message, QueueMessage } from './message.js'
export { QueueSubscription } from './queue.js'
export { Replay } from './replay.js'
export { Subscription } from './subscription.js'
