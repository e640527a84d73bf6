// The types of clients/js. Times are in seconds, as in the protocol.

export type Syntax = 'amqp' | 'native' | 'mqtt'
export type Topic = string | Uint8Array
export type Scalar = null | boolean | number | bigint | string | Uint8Array
export type Headers = Record<string, Scalar | Scalar[]>
/** A selector: a text, or an object in the form of EventBridge (docs/selectors.md). */
export type Where = string | Record<string, unknown>
export type Overflow = 'wait' | 'drop_newest' | 'drop_oldest' | 'error'
export type SlowPolicy = 'drop_newest' | 'drop_oldest' | 'disconnect' | 'pause'
export type Mark = [producer: string, batch: number | bigint, sequence: number | bigint]

export interface BackoffOptions {
  initial?: number
  factor?: number
  maximum?: number
  attempts?: number
  stable?: number
}

export interface ConnectOptions {
  name?: string
  user?: string
  password?: string
  /** A JWT in place of a password. */
  token?: string
  slowPolicy?: SlowPolicy
  /** false: a lost connection closes the client. */
  reconnect?: boolean | BackoffOptions
  retryFirstConnect?: boolean
  connectSeconds?: number
  timeoutSeconds?: number
  closeSeconds?: number
  pingSeconds?: number
  pendingBytes?: number
  pendingRequests?: number
  frameBytes?: number
  onDisconnect?: (error: FanlightError) => unknown
  onReconnect?: (client: Client) => unknown
  onError?: (error: BrokerError) => unknown
  /** The class to connect with; by default the one of the browser or of Node.js. */
  WebSocket?: new (url: string, protocols?: string | string[]) => WebSocketLike
}

export interface WebSocketLike {
  binaryType: string
  readonly bufferedAmount: number
  onopen: ((event: any) => unknown) | null
  onmessage: ((event: any) => unknown) | null
  onerror: ((event: any) => unknown) | null
  onclose: ((event: any) => unknown) | null
  send(data: any): void
  close(code?: number, reason?: string): void
}

/**
 * An open client. `urls`: ws://[user:password@]host:port, wss:// by TLS, or several, which are tried in turn.
 * Rejects with ConnectError or with what the broker answered.
 */
export function connect(urls: string | string[], options?: ConnectOptions): Promise<Client>

export interface PublishOptions {
  headers?: Headers
  syntax?: Syntax
  reply?: Topic
  receipt?: boolean
  timeoutSeconds?: number
  mark?: Mark
  delaySeconds?: number
  deliverAt?: Date | number
}

export interface Receipt {
  routed: number
  repeated: boolean
  delayed: boolean
  id: number | bigint | null
}

export interface SubscribeOptions {
  syntax?: Syntax
  where?: Where
  group?: string
  noEcho?: boolean
  after?: number
  /** Messages that the broker may send unread; with overflow 'wait' pendingMessages, else without a bound. */
  credit?: number
  brokerPendingMessages?: number
  pendingMessages?: number
  pendingBytes?: number
  overflow?: Overflow
}

export interface QueueDeclaration {
  messages_max?: number
  bytes_max?: number
  overflow?: 'refuse_publisher' | 'drop_newest' | 'drop_oldest' | 'dead_letter' | 'dead_letter_newest'
  message_ttl?: number
  expires?: number
  deliveries_max?: number
  dead_letter?: Topic
  dead_letter_syntax?: 0 | 1
  single_active?: boolean
  priorities?: number
}

export interface QueueOptions {
  syntax?: Syntax
  where?: Where
  /** Its name; without one the queue is this client's own. */
  queue?: string
  durable?: boolean
  prefetch?: number
  ackWaitSeconds?: number
  deliver?: 'new' | 'last' | { offset?: number | bigint; epoch?: number } | { since: number }
  declare?: QueueDeclaration
}

export interface ReplayOptions {
  syntax?: Syntax
  where?: Where
  offset?: number | bigint
  epoch?: number
  since?: Date | number
  end?: number | bigint
  pastOnly?: boolean
  pendingMessages?: number
  pendingBytes?: number
  overflow?: Exclude<Overflow, 'wait'>
}

export interface ClientStats {
  published: number
  delivered: number
  dropped: number
  unclaimed: number
  reconnects: number
  unsentKept: number
  unsentDropped: number
  bytesIn: number
  bytesOut: number
  held: boolean
  heldSeconds: number
}

export interface SubscriptionStats {
  delivered: number
  taken: number
  dropped: number
  droppedByBroker: number
}

export class Client {
  private constructor()
  readonly url: string
  readonly connected: boolean
  readonly closed: boolean
  readonly info: Record<string, any>
  readonly unsent: { messages: number; bytes: number }
  readonly stats: ClientStats
  publish(topic: Topic, payload: unknown, options: PublishOptions & { receipt: true }): Promise<Receipt>
  publish(topic: Topic, payload?: unknown, options?: PublishOptions & { receipt?: false }): Promise<undefined>
  request(topic: Topic, payload?: unknown, options?: Omit<PublishOptions, 'receipt' | 'reply'>): Promise<Message>
  flush(options?: { timeoutSeconds?: number }): Promise<void>
  subscribe(filter: Topic, options: QueueOptions & ({ ack: true } | { queue: string })): Promise<QueueSubscription>
  subscribe(filter: Topic, options?: SubscribeOptions): Promise<Subscription>
  replay(filter: Topic, options?: ReplayOptions): Promise<Replay>
  cancel(id: number | bigint, options?: { timeoutSeconds?: number }): Promise<boolean>
  queueRequest(verb: string, values?: Record<string, unknown>, options?: { timeoutSeconds?: number }): Promise<Record<string, any>>
  close(): Promise<void>
}

export class Message {
  protected constructor()
  readonly client: Client
  readonly topic: string
  readonly topicBytes: Uint8Array
  readonly syntax: 'amqp' | 'mqtt'
  readonly words: string[]
  readonly payload: Uint8Array
  readonly headers: Headers
  readonly reply: Topic | null
  readonly offset: number | bigint | undefined
  readonly timestamp: Date | undefined
  readonly size: number
  text(): string
  json(): any
  respond(payload?: unknown, options?: Omit<PublishOptions, 'syntax' | 'reply'>): Promise<Receipt | undefined>
}

export class QueueMessage extends Message {
  readonly sequence: number | bigint
  readonly attempt: number
  readonly redelivered: boolean
  ack(options?: { all?: boolean }): boolean
  nack(options?: { delaySeconds?: number }): boolean
  term(reason?: string): boolean
  inProgress(): boolean
}

export class Subscription<M extends Message = Message> implements AsyncIterable<M> {
  protected constructor()
  readonly client: Client
  readonly filter: Topic
  readonly stats: SubscriptionStats
  readonly pending: { messages: number; bytes: number }
  readonly ended: FanlightError | null
  next(options?: { signal?: AbortSignal }): Promise<M>
  unsubscribe(): Promise<void>
  /** Leaving the loop ends the subscription. */
  [Symbol.asyncIterator](): AsyncGenerator<M, void, undefined>
}

export class QueueSubscription extends Subscription<QueueMessage> {
  private constructor()
  readonly queue: string
  readonly active: boolean
  readonly paused: boolean
  pause(): Promise<void>
  resume(): Promise<void>
  change(options: { prefetch?: number; ackWaitSeconds?: number; paused?: boolean }): Promise<void>
}

export class Replay extends Subscription {
  private constructor()
  readonly live: boolean
  readonly nextOffset: number | bigint | undefined
  readonly epoch: number | undefined
  readonly kept: Record<string, any>
}

export class FanlightError extends Error {
  readonly code: string
  readonly details: Record<string, any>
  readonly request: number | null
}
export class ConnectError extends FanlightError {}
export class ConnectionLost extends FanlightError {}
export class ConnectionClosed extends FanlightError {}
export class RequestTimeout extends FanlightError {}
export class NoResponders extends FanlightError {}
export class SubscriptionEnded extends FanlightError {}
export class SubscriptionOverflow extends FanlightError {}
export class ProtocolError extends FanlightError {}
export class LimitExceeded extends FanlightError {}
export class BrokerError extends FanlightError {}
export const FATAL_CODES: ReadonlySet<string>
