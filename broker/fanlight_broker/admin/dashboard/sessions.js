// Sessions: what is kept for clients, connected or not.

import {send} from "./api.js";
import {act, ask, attempt, notice} from "./dialog.js";
import {badge, head, select} from "./dom.js";
import {bytes, count, seconds} from "./format.js";
import {list} from "./list.js";
import {below, peek} from "./messages.js";

export const title = "Sessions";

export function render(main, context) {
  const connected = select([["", "connected or not"], ["true", "connected"], ["false", "away"]], {name: "connected", "aria-label": "Connected"});
  const body = document.createElement("div");
  main.replaceChildren(head(title, "Subscriptions and messages that the broker keeps for clients, also while they are away."), body);
  return list(body, {
    path: "api/v1/sessions", name: "sessions", search: "Client or user", filters: [connected], query: context.query, sort: "queued",
    columns: [
      {title: "Client", sort: "client", cell: (row) => row.client},
      {title: "User", sort: "user", cell: (row) => row.user},
      {title: "State", sort: "connected", cell: (row) => (row.connected ? badge("connected", "good") : badge("away"))},
      {title: "Protocol", cell: (row) => row.protocol},
      {title: "Subscriptions", sort: "subscriptions", number: true, cell: (row) => count(row.subscriptions)},
      {title: "In flight", sort: "in_flight", number: true, cell: (row) => `${count(row.in_flight)} of ${count(row.receive_max)}`},
      {title: "Waiting", sort: "queued", number: true, cell: (row) => count(row.queued)},
      {title: "Bytes", sort: "queued_bytes", number: true, cell: (row) => bytes(row.queued_bytes)},
      {title: "Dropped", sort: "dropped", number: true, cell: (row) => count(row.dropped)},
      {title: "Kept for", sort: "expiry_seconds", number: true, cell: (row) => (row.expiry_seconds === null ? "ever" : seconds(row.expiry_seconds))},
    ],
    acts: (row, reload) => [act("Messages", () => peek(row.client, below(row.href, "messages")), {describe: `Messages of ${row.client}`}),
      context.who.write && act("End", () => end(row, reload), {danger: true, describe: `End the session of ${row.client}`})],
  }, context);
}

async function end(row, reload) {
  const lost = row.queued + row.in_flight;
  const given = await ask({title: `End the session of ${row.client}?`, action: "End it", danger: true,
    text: `Its ${count(row.subscriptions)} subscriptions and ${count(lost)} messages are lost, and its client is disconnected. This cannot be undone.`});
  if (given && await attempt(() => send("DELETE", row.href))) {
    notice(`The session of ${row.client} has ended.`);
    reload();
  }
}
