// Every error of the client. `code` is the protocol's word where there is one (docs/native-protocol.md, section 7), else
// a word of the client's own; `details` has the numbers.

export class FanlightError extends Error {
  constructor (text, { code, details, request, cause } = {}) {
    super(text, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code ?? new.target.code ?? 'error'
    this.details = details ?? {}
    this.request = request ?? null // the number of the request that it answers
  }
}

/** No connection could be made. `details`: `url`. */
export class ConnectError extends FanlightError { static code = 'cannot_connect' }
/** The connection broke, or the broker said goodbye: `code` is its reason where it gave one. */
export class ConnectionLost extends FanlightError { static code = 'connection_lost' }
/** The client was closed by its own program. */
export class ConnectionClosed extends FanlightError { static code = 'closed' }
/** No answer in time. `details`: `seconds`. */
export class RequestTimeout extends FanlightError { static code = 'timeout' }
/** Nobody is subscribed to the topic of a request. `details`: `topic`. */
export class NoResponders extends FanlightError { static code = 'no_responders' }
/** The subscription has ended, and nothing is left in its queue. */
export class SubscriptionEnded extends FanlightError { static code = 'subscription_ended' }
/** A subscription's queue was full, with `overflow: 'error'`. `details`: `messages`, `bytes`, `dropped`. */
export class SubscriptionOverflow extends FanlightError { static code = 'subscription_overflow' }
/** A frame of the broker that is none. */
export class ProtocolError extends FanlightError { static code = 'protocol_error' }
/** A limit of the client's own is reached. `details`: `limit` (its name), `value`. */
export class LimitExceeded extends FanlightError { static code = 'limit_exceeded' }
/** The broker answered ERROR; `code` says why. */
export class BrokerError extends FanlightError { static code = 'broker_error' }

/** After these another attempt would be refused again. */
export const FATAL_CODES = new Set(['authentication_failed', 'not_permitted', 'unsupported_version'])
