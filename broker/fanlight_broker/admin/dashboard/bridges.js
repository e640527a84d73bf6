// Bridges: links to other brokers, what passed over them, what waits, and making them anew.

import {send} from "./api.js";
import {act, ask, attempt, notice, show} from "./dialog.js";
import {badge, h, head} from "./dom.js";
import {clock, count} from "./format.js";
import {list} from "./list.js";

export const title = "Bridges";

const KINDS = {up: "good", connecting: "blue", paused: "warn"};

export function render(main, context) {
  const body = h("div");
  main.replaceChildren(head(title, "Links to other brokers. What goes out while one is away waits in its queue."), body);
  return list(body, {
    path: "api/v1/bridges", name: "bridges", search: "Bridge or address", query: context.query, sort: "name", order: "asc",
    columns: [
      {title: "Bridge", sort: "name", cell: (row) => row.name},
      {title: "State", sort: "state", cell: (row) => [badge(row.state, KINDS[row.state] ?? "bad"), row.reason && h("div", {class: "muted small"}, row.reason)]},
      {title: "Since", cell: (row) => (row.since ? clock(1_000 * row.since, true) : "–")},
      {title: "Address", sort: "address", cell: (row) => [h("span", {class: "mono"}, row.address), h("div", {class: "muted small"}, `MQTT ${row.version}${row.tls ? ", TLS" : ""}`)]},
      {title: "Waiting", sort: "waiting", number: true, cell: (row) => `${count(row.waiting)} of ${count(row.waiting_max)}`},
      {title: "Out", number: true, cell: (row) => count(row.out.messages)},
      {title: "In", number: true, cell: (row) => count(row.in.messages)},
      {title: "Failed to connect", number: true, cell: (row) => count(row.failures)},
    ],
    acts: (row, reload) => [act("Routes", () => routes(row), {describe: `Routes of ${row.name}`}), context.who.write && [
      row.state === "paused" ? act("Resume", () => change(row, "resume", "goes on", reload), {describe: `Resume ${row.name}`})
        : [act("Reconnect", () => change(row, "reconnect", "makes its link anew", reload), {describe: `Reconnect ${row.name}`}),
          act("Pause", () => pause(row, reload), {danger: true, describe: `Pause ${row.name}`})],
    ]],
  }, context);
}

function routes(row) {
  show(`Routes of ${row.name}`, h("div", {class: "scroll"}, h("table", null,
    h("thead", null, h("tr", null, ["Direction", "Here", "There", "QoS", "Selector"].map((each) => h("th", {scope: "col"}, each)))),
    h("tbody", null, row.routes.map((each) => h("tr", null, h("td", null, each.direction), h("td", null, h("code", null, each.local)),
      h("td", null, h("code", null, each.remote), row.refused_filters[each.remote] !== undefined && [" ", badge("refused there", "bad")]),
      h("td", null, each.qos), h("td", null, each.where && h("code", null, each.where))))))));
}

async function pause(row, reload) {
  if (await ask({title: `Pause ${row.name}?`, action: "Pause", danger: true,
    text: `Its link is closed until it is resumed or the broker starts again. What goes out waits, up to ${count(row.waiting_max)} messages; what comes in waits at the other broker, if that keeps it.`})) {
    await change(row, "pause", "is paused", reload);
  }
}

async function change(row, verb, done, reload) {
  if (await attempt(() => send("POST", `${row.href}/${verb}`, {}))) {
    notice(`${row.name} ${done}.`);
    reload();
  }
}
