// Where a broker is: ws://[user:password@]host[:port][/path], or wss:// by TLS. User and password go into HELLO, not into
// the request, where a browser would not let them be.

const HINTS = {
  fanlight: 'this client connects by WebSocket, as in ws://127.0.0.1:7425',
  fanlights: 'this client connects by WebSocket and TLS, as in wss://127.0.0.1:7426',
  http: 'that is the address of pages and views; the WebSocket is elsewhere, as in ws://127.0.0.1:7425',
  https: 'that is the address of pages and views; the WebSocket is elsewhere, as in wss://127.0.0.1:7426',
  mqtt: 'that is for clients of MQTT; this one speaks the native protocol, as in ws://127.0.0.1:7425',
  amqp: 'that is for clients of AMQP; this one speaks the native protocol, as in ws://127.0.0.1:7425'
}

/** { url, user, password }. Throws TypeError, without the password in its text. */
export function parseAddress (text) {
  let url
  try {
    url = new URL(text)
  } catch {
    throw new TypeError(`cannot read the address ${shown(String(text))}; it looks like ws://127.0.0.1:7425`)
  }
  const scheme = url.protocol.slice(0, -1)
  if (scheme !== 'ws' && scheme !== 'wss') {
    throw new TypeError(`the address ${shown(text)}: ${HINTS[scheme] ?? 'it must begin with ws:// or wss://'}`)
  }
  const user = url.username === '' ? undefined : decodeURIComponent(url.username)
  const password = url.password === '' ? undefined : decodeURIComponent(url.password)
  url.username = url.password = url.hash = ''
  return { url: url.href, user, password }
}

const shown = (text) => text.replace(/\/\/.*@/, '//***@')
