// Slow consumers: who falls behind, and what the broker does about it.

import {every, get} from "./api.js";
import {badge, fill, h, head} from "./dom.js";
import {bytes, count, percent, seconds} from "./format.js";

export const title = "Slow consumers";

const POLICIES = {
  drop_newest: "new messages for it are dropped", drop_oldest: "its oldest unsent messages are dropped",
  disconnect: "it is disconnected when its outbox is full", pause: "its publishers are held back",
};

export function render(main, {failed}) {
  const body = h("section", {class: "card"});
  fill(main, head(title, "Clients that take messages more slowly than they come: dropping, holding publishers back, or with an outbox over half full."), body);
  return every(5_000, async (signal) => {
    const {items: rows} = await get("api/v1/slow-consumers", {limit: 200}, signal);
    failed(null);
    fill(body, rows.length === 0 ? h("p", {class: "empty"}, "Nobody falls behind.") : h("div", {class: "scroll"}, h("table", null,
      h("thead", null, h("tr", null, ["Client", "What is wrong", "What the broker does"].map((each) => h("th", {scope: "col"}, each)),
        ["Full first", "Unsent", "Of its limit", "Dropped", "Publishers held"].map((each) => h("th", {scope: "col", class: "number"}, each)))),
      h("tbody", null, rows.map((row) => h("tr", null,
        h("td", null, h("a", {href: `#/connections?${new URLSearchParams({q: row.client})}`}, row.client), h("div", {class: "muted small"}, row.address)),
        h("td", null, badge(row.reason, "warn")), h("td", null, POLICIES[row.policy] ?? row.policy),
        h("td", {class: "number"}, row.slow_seconds === null ? "not yet" : `${seconds(row.slow_seconds)} ago`), h("td", {class: "number"}, bytes(row.outbox_bytes)), h("td", {class: "number"}, percent(row.outbox_bytes / row.limit)),
        h("td", {class: "number"}, count(row.dropped)), h("td", {class: "number"}, seconds(row.held_publishers_seconds))))))));
  }, failed);
}
