// Overview: is all well, how much goes through, and what is near its limit.

import {every, get, send} from "./api.js";
import {lines} from "./chart.js";
import {ask, attempt, notice} from "./dialog.js";
import {field, fill, h, head} from "./dom.js";
import {bytes, count, percent, seconds, short, words} from "./format.js";
import {History} from "./history.js";

export const title = "Overview";

export function render(main, {failed, who}) {
  const history = new History();
  const tiles = h("div", {class: "tiles"});
  const health = h("div");
  const bars = h("div", {class: "bars"});
  const drops = h("div");
  const charts = {
    messages: lines("Messages", {names: ["in", "out"], show: short, unit: "/s"}),
    bytes: lines("Bytes", {names: ["in", "out"], show: bytes, unit: "/s", binary: true}),
    clients: lines("Clients", {names: ["connected", "sessions away"], show: count}),
    queues: lines("Waiting messages", {names: ["in queues", "unacknowledged", "delayed", "retained"], show: count}),
    memory: lines("Memory", {names: ["process", "stored messages", "unsent", "subscriptions"], show: bytes, binary: true}),
    loop: lines("Delay of the event loop", {names: ["worst of 5 s"], show: seconds}),
    cpu: lines("Processor", {names: ["of one core"], show: percent}),
    drops: lines("Dropped and expired messages", {names: ["dropped"], show: short, unit: "/s"}),
  };
  const drained = h("span");
  fill(main, head(title, "The last hour of this broker, a sample every five seconds.", h("span", {class: "grow"}), drained), health, tiles,
    h("div", {class: "grid"}, Object.values(charts).map((each) => each.element)),
    h("div", {class: "grid"},
      h("section", {class: "card"}, h("h2", null, "Limits"), bars),
      h("section", {class: "card"}, h("h2", null, "Messages not delivered, by reason"), drops)));

  function tile(label, value, unit, note, kind = "") {
    return h("div", {class: `card tile ${kind}`}, h("div", {class: "label"}, label),
      h("div", {class: "value"}, value, unit && h("small", null, unit)), h("div", {class: "note"}, note));
  }

  function draw() {
    const {times} = history;
    const reasons = Object.keys(history.counters).filter((name) => name.startsWith("dropped_") || name === "messages_expired");
    const rates = reasons.map((name) => history.rate(name));
    const dropped = times.map((_, place) => (place === 0 ? null : rates.reduce((sum, row) => sum + (row[place] ?? 0), 0)));
    const lag = history.gauge("loop_lag_recent_microseconds", 1e-6);
    const cpu = history.rate("cpu_microseconds").map((value) => value && value / 1e6);
    charts.messages.draw(times, [history.rate("messages_in"), history.rate("messages_out")]);
    charts.bytes.draw(times, [history.rate("bytes_in"), history.rate("bytes_out")]);
    charts.clients.draw(times, [history.gauge("connections"), history.gauge("sessions_away")]);
    charts.queues.draw(times, ["queue_waiting", "queue_unacknowledged", "delayed_messages", "retained_messages"].map((name) => history.gauge(name)));
    charts.memory.draw(times, ["resident_bytes", "stored_bytes", "outbox_bytes", "subscription_bytes"].map((name) => history.gauge(name)));
    charts.loop.draw(times, [lag]);
    charts.cpu.draw(times, [cpu]);
    charts.drops.draw(times, [dropped]);
    const last = (row) => row.at(-1) ?? null;
    const level = (name) => last(history.gauge(name));
    const lost = reasons.reduce((sum, name) => sum + history.growth(name), 0);
    fill(tiles,
      tile("Messages in", short(last(history.rate("messages_in"))), "/s", `${short(history.total("messages_in"))} since the start`),
      tile("Messages out", short(last(history.rate("messages_out"))), "/s", `${short(history.total("messages_out"))} since the start`),
      tile("Connections", count(level("connections")), "", `${count(level("sessions_away"))} sessions away`),
      tile("Subscriptions", count(level("subscriptions")), "", `${count(level("retained_messages"))} retained messages`),
      tile("In queues", count(level("queue_waiting")), "", `${count(level("queues"))} queues`),
      tile("Not delivered", count(lost), "", "in this hour; reasons below", lost ? "warn" : ""),
      tile("Loop delay", seconds(last(lag)), "", "worst of the last seconds", last(lag) > 0.25 ? "bad" : ""),
      tile("Memory", bytes(level("resident_bytes")), "", `processor ${last(cpu) === null ? "–" : percent(last(cpu))}`));
    const rows = reasons.map((name) => [name.replace("dropped_", ""), history.total(name), history.growth(name)])
      .filter(([, total]) => total > 0).sort((one, other) => other[1] - one[1]);
    fill(drops, rows.length === 0 ? h("p", {class: "muted"}, "Nothing was lost.") : h("table", null,
      h("thead", null, h("tr", null, h("th", {scope: "col"}, "Reason"), h("th", {scope: "col", class: "number"}, "in this hour"),
        h("th", {scope: "col", class: "number"}, "since the start"))),
      h("tbody", null, rows.map(([name, total, grown]) => h("tr", null, h("td", null, words(name)),
        h("td", {class: "number"}, count(grown)), h("td", {class: "number"}, count(total)))))));
  }

  async function limits(signal) {
    const {limits: found, unwell, draining} = await get("api/v1/overview", {}, signal);
    fill(drained, who.write && h("button", {type: "button", onclick: draining ? open : drain}, draining ? "Let clients in again" : "Drain…"));
    fill(health, draining && h("div", {class: "banner warn"}, "The broker drains: it lets nobody in."), unwell.map((part) => h("div", {class: "banner"}, `The ${part} has a problem. The log says which.`)));
    fill(bars, found.filter(({most}) => most > 0).map(({limit, used, most}) => {
      const [name, part] = [limit.replace(/_max$/, ""), used / most];
      const show = name.endsWith("_bytes") ? bytes : short;
      const filled = h("span");
      filled.style.width = `${Math.min(100, 100 * part)}%`;
      return [h("span", null, words(name)),
        h("div", {class: `bar ${part >= 0.95 ? "bad" : part >= 0.8 ? "warn" : ""}`, role: "meter", "aria-label": words(name),
          "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * part)}, filled),
        h("span", {class: "number"}, `${show(used)} of ${show(most)}`)];
    }));
  }

  async function drain() {
    const stop = h("input", {type: "checkbox", name: "stop", value: "true"});
    const given = await ask({title: "Drain this broker?", action: "Drain", danger: true,
      text: "It lets nobody in and says goodbye to all clients, who connect elsewhere. What is kept for them stays in the store.",
      content: h("div", {class: "form"}, field("Seconds that they have", h("input", {name: "seconds", type: "number", min: "0", value: "30", required: true}), {class: "full"}),
        h("label", {class: "inline full"}, stop, h("span", null, "then end the process, for a restart")))});
    if (given && await attempt(() => send("POST", "api/v1/drain", {seconds: Number(given.seconds), stop: Boolean(given.stop)}))) {
      notice("The broker drains.", given.stop ? null : open);
      await limits().catch(failed);
    }
  }

  async function open() {
    if (await attempt(() => send("DELETE", "api/v1/drain"))) {
      notice("Clients are let in again.");
      await limits().catch(failed);
    }
  }

  return every(5_000, async (signal) => {
    await Promise.all([history.update(signal).then(draw), limits(signal)]);
    failed(null);
  }, failed);
}
