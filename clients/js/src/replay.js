// A replay: first what the broker has archived, then what is published, without a gap (section 3.7). After a reconnect it
// goes on where it was, while it is in the archive.

import { TYPE } from './frames.js'
import { given, Subscription } from './subscription.js'

export class Replay extends Subscription {
  live = false // all that was archived has come
  kept = {} // what the broker said of its archive: archive, start, end, offset

  constructor (client, filter, options) {
    super(client, filter, options)
    if (options.offset !== undefined && options.since !== undefined) throw new TypeError('give an offset or a time, not both')
    this.nextOffset = options.offset // of the first archived message that has not come
    this.epoch = options.epoch
  }

  request () {
    if (this.live) return this.options.pastOnly || this.options.end !== undefined ? null : super.request()
    const { since, end, pastOnly, where } = this.options
    this.client.require('replay', true, 'archive: there is nothing to replay')
    this.client.require('where', where !== undefined, 'selectors: do without `where`')
    const known = this.nextOffset !== undefined
    return [TYPE.REPLAY, {
      filter: this.filter,
      options: given({
        syntax: this.syntax || undefined, offset: this.nextOffset, epoch: known ? this.epoch : undefined,
        since: known || since === undefined ? undefined : microseconds(since), end, past_only: pastOnly || undefined, where
      })
    }]
  }

  answered (result) {
    if (!('archive' in result)) return
    if (!this.live) this.epoch = result.epoch
    this.kept = result
  }

  deliver (frame) {
    if (frame.offset !== undefined) {
      this.nextOffset = typeof frame.offset === 'bigint' ? frame.offset + 1n : frame.offset + 1
    }
    super.deliver(frame)
  }

  replayEnded ({ offset, epoch }) {
    this.live = true
    this.nextOffset = offset
    this.epoch = epoch
  }
}

/** A Date, or seconds since 1970. */
function microseconds (when) {
  const seconds = when instanceof Date ? when.getTime() / 1000 : when
  if (!(seconds >= 0)) throw new TypeError(`since is a Date or seconds since 1970, not ${when}`)
  return Math.round(seconds * 1_000_000)
}
