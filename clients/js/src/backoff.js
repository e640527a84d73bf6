// How long to wait before the next attempt to connect: between 0 and a bound that doubles ("full jitter"). When a broker
// restarts, all its clients have lost it at the same instant, and only the full range spreads them out.

export class Backoff {
  /** Seconds. `attempts`: how many in a row at most. `stable`: a connection that lived so long begins anew. */
  constructor ({ initial = 0.1, factor = 2, maximum = 10, attempts = Infinity, stable = 5 } = {}) {
    if (!(initial > 0 && factor >= 1 && maximum >= initial && attempts >= 1)) {
      throw new TypeError('a back-off needs initial > 0, factor >= 1, maximum >= initial and attempts >= 1')
    }
    Object.assign(this, { initial, factor, maximum, attempts, stable })
  }

  /** The longest wait before attempt number `attempt`, from 0. */
  ceiling (attempt) {
    return Math.min(this.maximum, this.initial * this.factor ** attempt)
  }

  /** The wait before attempt number `attempt`; undefined if there is to be none. */
  delay (attempt, random = Math.random) {
    return attempt < this.attempts ? random() * this.ceiling(attempt) : undefined
  }
}
