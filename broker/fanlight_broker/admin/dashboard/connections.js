// Connections: who is there; and out with somebody.

import {send} from "./api.js";
import {act, ask, attempt, notice} from "./dialog.js";
import {badge, field, h, head, select} from "./dom.js";
import {bytes, count, seconds} from "./format.js";
import {list} from "./list.js";

export const title = "Connections";

export function render(main, context) {
  const protocol = select([["", "all protocols"], "native", "mqtt", "amqp"], {name: "protocol", "aria-label": "Protocol"});
  const slow = h("input", {type: "checkbox", name: "slow"});
  h("label", {class: "inline"}, slow, h("span", null, "slow ones only"));
  const body = h("div");
  main.replaceChildren(head(title, "Clients that are connected now."), body);
  return list(body, {
    path: "api/v1/connections", name: "connections", search: "Client, user, address or program", filters: [protocol, slow],
    query: context.query, // in the order of their ids, for which no other row is looked at
    columns: [
      {title: "Client", sort: "client", cell: (row) => [h("a", {href: `#/explain?${new URLSearchParams({client: row.client})}`, title: "Why does it not get something?"}, row.client), row.slow && [" ", badge("slow", "warn")], h("div", {class: "muted small"}, row.agent)]},
      {title: "User", sort: "user", cell: (row) => row.user || h("span", {class: "muted"}, "anonymous")},
      {title: "Address", sort: "address", cell: (row) => h("span", {class: "mono"}, `${row.address}:${row.port}`)},
      {title: "Protocol", sort: "protocol", cell: (row) => row.protocol},
      {title: "For", sort: "connected_seconds", number: true, cell: (row) => seconds(row.connected_seconds)},
      {title: "Subscriptions", sort: "subscriptions", number: true, cell: (row) => count(row.subscriptions)},
      {title: "Unsent", sort: "outbox_bytes", number: true, cell: (row) => bytes(row.outbox_bytes)},
      {title: "Sent", sort: "messages_sent", number: true, cell: (row) => count(row.messages_sent)},
      {title: "Dropped", sort: "messages_dropped", number: true, cell: (row) => count(row.messages_dropped)},
    ],
    acts: (row, reload) => context.who.write && act("Kick", () => kick(row, reload), {danger: true, describe: `Kick ${row.client}`}),
  }, context);
}

async function kick(row, reload) {
  const reason = h("input", {name: "reason", value: "an operator has ended this connection"});
  const given = await ask({title: `End the connection of ${row.client}?`, action: "Kick", danger: true, content: field("Reason, which the client gets", reason),
    text: "Most clients connect again by themselves. To keep one out, take its permission or its user away."});
  if (given && await attempt(() => send("DELETE", row.href, undefined, {reason: given.reason}))) {
    notice(`${row.client} was disconnected.`);
    reload();
  }
}
