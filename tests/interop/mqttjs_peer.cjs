// MQTT.js on a string: commands as lines of JSON on standard input, answers and events as lines on standard output.
//
//     {"id": 7, "client": 1, "do": "subscribe", "filter": "a/#", "options": {"qos": 1}}
//     {"id": 7, "value": 1}                     or   {"id": 7, "code": 134, "error": "..."}
//     {"client": 1, "event": "message", ...}    and  {"client": 1, "event": "closed", "reason": 142}
//
// Payloads and correlation data are base64. mqttjs_peer.py holds the string.

const mqtt = require(process.argv[2])
const readline = require('node:readline')

const clients = new Map()

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')

const onMessage = (number) => (topic, payload, packet) => {
  const { correlationData, ...properties } = packet.properties ?? {}
  say({
    client: number, event: 'message', topic, payload: payload.toString('base64'), qos: packet.qos, retain: packet.retain,
    properties, correlation: correlationData ? Buffer.from(correlationData).toString('base64') : null
  })
}

const revived = (properties) => {
  if (properties?.correlationData) properties.correlationData = Buffer.from(properties.correlationData, 'base64')
  return properties
}

const actions = {
  connect (command, done) {
    const { url, options } = command
    if (options.will) {
      options.will.payload = Buffer.from(options.will.payload, 'base64')
      revived(options.will.properties)
    }
    const client = mqtt.connect(url, { reconnectPeriod: 0, ...options })
    clients.set(command.client, client)
    let reason = null
    client.once('connect', (connack) => done(null, { present: connack.sessionPresent, properties: connack.properties }))
    client.on('error', done)
    client.on('connect', (connack) => say({ client: command.client, event: 'connected', present: connack.sessionPresent }))
    client.on('message', onMessage(command.client))
    client.on('disconnect', (packet) => { reason = packet.reasonCode })
    client.on('close', () => say({ client: command.client, event: 'closed', reason }))
  },
  subscribe (command, done) {
    clients.get(command.client).subscribe(command.filter, command.options, (error, granted, packet) => {
      done(packet ? null : error, packet?.granted[0])
    })
  },
  unsubscribe (command, done) {
    clients.get(command.client).unsubscribe(command.filter, (error) => done(error))
  },
  publish (command, done) {
    let left = command.messages.length
    for (const { topic, payload, properties, ...options } of command.messages) {
      const asked = properties ? { ...options, properties: revived(properties) } : options
      clients.get(command.client).publish(topic, Buffer.from(payload, 'base64'), asked, (error) => {
        left -= 1
        if (error || left === 0) done(error)
      })
    }
  },
  disconnect (command, done) {
    clients.get(command.client).end(false, {}, () => done())
  },
  cut (command, done) {
    const client = clients.get(command.client)
    client.once('close', () => done())
    client.stream.destroy()
  }
}

const lines = readline.createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const command = JSON.parse(line)
  let answered = false
  actions[command.do](command, (error, value) => {
    if (answered) return
    answered = true
    if (error) say({ id: command.id, code: error.code ?? null, error: String(error) })
    else say({ id: command.id, value: value ?? null })
  })
})
lines.on('close', () => process.exit(0))
