// A live tail: messages as they come, the newest first, at most ROWS of them; and what a replay brings.
//
// A page cannot show more than some messages a second, so the broker is asked for as many as fit and drops the rest of
// this one subscription; how many is shown.

import {NoSocket, live} from "./live.js";
import {fill, h} from "./dom.js";
import {bytes, clock, count} from "./format.js";

const ROWS = 200;
const PENDING = 1_000;
const PAINT = 250; // ms between two paints
const SHOWN = 300; // characters of a payload

export function tail() {
  const rows = [];
  const body = h("tbody");
  const status = h("span", {class: "muted small", role: "status"});
  const table = h("div", {class: "tail scroll", tabindex: "0", "aria-label": "Messages"}, h("table", null,
    h("thead", null, h("tr", null, ["Time", "Topic", "Payload", "Size"].map((each) => h("th", {scope: "col"}, each)))), body));
  let client = null;
  let subscription = null;
  let seen = 0;
  let timer = null;
  let turn = 0;

  function paint() {
    timer = null;
    fill(body, rows.map(({time, message, text}) => h("tr", null, h("td", null, clock(time, true)), h("td", null, message.topic),
      h("td", null, text), h("td", {class: "number"}, bytes(message.size)))));
    if (subscription) status.textContent = `${count(seen)} messages${subscription.stats.dropped ? `, and ${count(subscription.stats.dropped)} more than can be shown` : ""}`;
  }

  function take(message) {
    seen += 1;
    const text = message.text();
    const time = message.timestamp ? Number(message.timestamp) / 1_000 : Date.now();
    rows.unshift({time, message, text: text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text});
    rows.length = Math.min(rows.length, ROWS);
    timer ??= setTimeout(paint, PAINT);
  }

  async function stop(text = "") {
    turn += 1;
    clearTimeout(timer);
    timer = null;
    paint();
    const ended = client;
    client = subscription = null;
    if (text) status.textContent = text;
    await ended?.close();
  }

  // begin(client) returns the subscription. Returns when it has ended.
  async function run(begin, most = Infinity) {
    await stop();
    turn += 1;
    const mine = turn;
    rows.length = seen = 0;
    paint();
    status.textContent = "Connecting…";
    try {
      const opened = await live();
      if (mine !== turn) {
        await opened.close();
        return;
      }
      client = opened;
      subscription = await begin(client);
      status.textContent = "Waiting for messages…";
      for await (const message of subscription) {
        if (mine !== turn) return;
        take(message);
        if (seen >= most) break;
      }
      if (mine === turn) await stop(`${count(seen)} messages; no more are asked for.`);
    } catch (error) {
      if (!(error instanceof NoSocket) && error.code === undefined) throw error;
      if (mine === turn) await stop(error.message);
    }
  }

  return {
    element: h("div", null, h("div", {class: "row"}, status), table),
    follow: (filter, options) => run((to) => to.subscribe(filter, {...options, pendingMessages: PENDING, overflow: "drop_newest"})),
    replay: (filter, options, most) => run((to) => to.replay(filter, {...options, pendingMessages: 65_536, pastOnly: true}), most),
    stop,
  };
}
