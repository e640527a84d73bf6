// The hour of metrics that the broker keeps, fetched once and then continued by what is newer.

import {get} from "./api.js";

const HOUR = 3_600_000;

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.began = null;
    this.next = 0;
    this.times = [];
    this.counters = {};
    this.gauges = {};
  }

  // Fetch what is new. After a restart of the broker its hour begins anew.
  async update(signal) {
    const answer = await get("api/v1/history", this.next ? {after: this.next} : {}, signal);
    if (this.began !== null && answer.began !== this.began) {
      this.clear();
      return this.update(signal);
    }
    this.began = answer.began;
    this.next = answer.next;
    const before = this.times.length;
    this.times.push(...answer.times);
    for (const kind of ["counters", "gauges"]) {
      for (const [name, values] of Object.entries(answer[kind])) {
        (this[kind][name] ??= new Array(before).fill(null)).push(...values);
      }
    }
    const old = this.times.findIndex((time) => time > this.times.at(-1) - HOUR);
    for (const row of [this.times, ...Object.values(this.counters), ...Object.values(this.gauges)]) row.splice(0, old);
    return undefined;
  }

  // How much a counter grew, a second; null for the first sample, which has nothing before it.
  rate(name) {
    const row = this.counters[name] ?? [];
    return this.times.map((time, place) => {
      if (place === 0 || row[place] === undefined || row[place - 1] === null) return null;
      return Math.max(0, row[place] - row[place - 1]) / ((time - this.times[place - 1]) / 1_000);
    });
  }

  gauge(name, factor = 1) {
    const row = this.gauges[name] ?? [];
    return this.times.map((_, place) => (typeof row[place] === "number" ? row[place] * factor : null));
  }

  total(name) {
    return this.counters[name]?.at(-1) ?? 0;
  }

  // How much a counter grew since the oldest sample.
  growth(name) {
    const row = this.counters[name] ?? [];
    return row.length ? row.at(-1) - (row.find((value) => value !== null) ?? 0) : 0;
  }
}
