// The story of test_amqp_clients.py with amqplib: node amqplib_story.cjs LIBRARY PORT
const amqp = require(process.argv[2])
const url = `amqp://guest:guest@127.0.0.1:${process.argv[3]}/`
const QUEUE = 'story-amqplib'

const connect = async () => {
  for (;;) {
    try {
      const connection = await amqp.connect(url)
      connection.on('error', () => {}) // 'close' follows
      return connection
    } catch (error) {
      // While the killed broker ends, its port may still take a connection that is then reset, or closed.
      const closed = error.message === 'Socket closed abruptly during opening handshake'
      if (!closed && !['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(error.code)) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

// Deliveries in order, acknowledged one by one, until `last` is there; then the consumer is cancelled.
const take = (channel, last) => new Promise((resolve, reject) => {
  const bodies = []
  const tag = 'reader'
  channel.consume(QUEUE, (message) => {
    if (message === null || bodies.at(-1) === last) return
    bodies.push(message.content.toString())
    channel.ack(message)
    if (bodies.at(-1) === last) channel.cancel(tag).then(() => resolve(bodies), reject)
  }, { consumerTag: tag }).catch(reject)
})

const main = async () => {
  let connection = await connect()
  let channel = await connection.createConfirmChannel()
  await channel.assertQueue(QUEUE, { durable: true })
  for (let number = 0; number < 100; number++) channel.sendToQueue(QUEUE, Buffer.from(`${number}`), { persistent: true })
  await channel.waitForConfirms()
  console.log('confirmed 100')
  const returned = new Promise((resolve) => channel.once('return', resolve))
  channel.publish('', 'nobody', Buffer.from('x'), { mandatory: true })
  const { fields } = await returned
  console.log(`returned ${fields.replyCode} ${fields.replyText} ${fields.routingKey}`)
  await channel.prefetch(10)
  console.log(`took ${await take(channel, '59')}`)
  await channel.assertQueue(QUEUE, { durable: true })
  const closed = new Promise((resolve) => connection.once('close', resolve))
  console.log('ready')
  await closed
  console.log('lost')
  connection = await connect()
  channel = await connection.createConfirmChannel()
  console.log(`took ${await take(channel, '99')}`)
  await connection.close()
  console.log('done')
}

main().catch((error) => { console.log(error); process.exit(1) })
