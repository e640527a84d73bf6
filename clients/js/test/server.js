// A real broker for the tests: `fanlightd serve` on free ports of the loopback address. FANLIGHTD names the program.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PROGRAM = process.env.FANLIGHTD ?? fileURLToPath(new URL('../../../.venv/bin/fanlightd', import.meta.url))
const LISTENERS = ['native', 'native-websocket', 'mqtt', 'mqtt-websocket', 'amqp', 'http']

export class Server {
  ports = {}
  #process

  /** settings: flags of `fanlightd serve` without their dashes; true for one without a value. */
  static async start (settings = {}) {
    const server = new Server()
    const flags = { ...Object.fromEntries(LISTENERS.map((name) => [`${name}-port`, 0])), 'log-format': 'json', ...settings }
    server.settings = settings
    server.#process = spawn(PROGRAM, ['serve', ...Object.entries(flags).flatMap(([name, value]) =>
      value === true ? [`--${name}`] : [`--${name}`, String(value)])], { stdio: ['ignore', 'pipe', 'inherit'] })
    const lines = createInterface({ input: server.#process.stdout })
    let ready = false
    for await (const line of lines) {
      const entry = JSON.parse(line)
      if (entry.event === 'listening') server.ports[entry.listener] = entry.port
      ready = entry.event === 'ready'
      if (ready) break
    }
    if (!ready) throw new Error(`${PROGRAM} has ended before it was ready`)
    server.#process.stdout.resume() // the rest is read and forgotten
    return server
  }

  get url () { return `ws://127.0.0.1:${this.ports.native_websocket}` }

  signal (name) { this.#process.kill(name) }

  async stop (signal = 'SIGTERM') {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill(signal)
    await gone
  }

  /** The same again, on the same port for WebSocket. */
  async restart (signal = 'SIGTERM') {
    await this.stop(signal)
    return Server.start({ ...this.settings, 'native-websocket-port': this.ports.native_websocket })
  }
}
