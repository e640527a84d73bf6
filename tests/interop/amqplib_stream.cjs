// A stream with amqplib, as its own example reads one: node amqplib_stream.cjs LIBRARY PORT SECONDS
const amqp = require(process.argv[2])
const QUEUE = 'stream-amqplib'

const main = async () => {
  const connection = await amqp.connect(`amqp://guest:guest@127.0.0.1:${process.argv[3]}/`)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(QUEUE, {
    durable: true, autoDelete: false, exclusive: false,
    arguments: { 'x-queue-type': 'stream', 'x-max-length-bytes': 2_000_000_000 }
  })
  for (let number = 0; number < 5; number++) channel.sendToQueue(QUEUE, Buffer.from(`${number}`))
  await channel.waitForConfirms()
  await channel.prefetch(100)
  let offsets = []
  const take = (offset, count) => new Promise((resolve, reject) => {
    const bodies = []
    channel.consume(QUEUE, (message) => {
      if (message === null || bodies.length === count) return
      bodies.push(message.content.toString())
      offsets.push(message.properties.headers['x-stream-offset'])
      channel.ack(message)
      if (bodies.length === count) channel.cancel(message.fields.consumerTag).then(() => resolve(bodies), reject)
    }, { noAck: false, arguments: { 'x-stream-offset': offset } }).catch(reject)
  })
  console.log(`first ${await take('first', 5)}`)
  console.log(`${await take(offsets.at(-1), 1)}`)
  console.log(`timestamp ${await take({ '!': 'timestamp', value: Number(process.argv[4]) }, 5)}`)
  console.log(`1h ${await take('1h', 5)}`)
  await connection.close()
}

main().catch((error) => { console.error(error); process.exit(1) })
