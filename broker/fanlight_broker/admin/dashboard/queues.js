// Named queues: what waits, and what to do with it.

import {send} from "./api.js";
import {act, ask, attempt, notice} from "./dialog.js";
import {badge, field, h, head} from "./dom.js";
import {bytes, count, seconds} from "./format.js";
import {list} from "./list.js";
import {below, peek} from "./messages.js";

export const title = "Queues";

export function render(main, context) {
  const body = h("div");
  main.replaceChildren(head(title, "Named queues: each message goes to one of their consumers, which acknowledges it."), body);
  return list(body, {
    path: "api/v1/queues", name: "queues", search: "Queue or user", query: context.query, sort: "waiting",
    columns: [
      {title: "Queue", sort: "queue", cell: (row) => [row.queue, row.durable === false && [" ", badge("not durable")], row.namespace && h("div", {class: "muted small"}, row.namespace)]},
      {title: "Filters", cell: (row) => row.filters.slice(0, 4).map((each) => h("div", null, h("code", null, each.filter)))},
      {title: "Waiting", sort: "waiting", number: true, cell: (row) => count(row.waiting)},
      {title: "Unacknowledged", sort: "unacknowledged", number: true, cell: (row) => count(row.unacknowledged)},
      {title: "Bytes", sort: "bytes", number: true, cell: (row) => bytes(row.bytes)},
      {title: "Oldest", sort: "oldest_seconds", number: true, cell: (row) => (row.waiting ? seconds(row.oldest_seconds) : "–")},
      {title: "Consumers", sort: "consumer_count", number: true, cell: (row) => (row.consumer_count ? count(row.consumer_count) : badge("none", row.waiting ? "warn" : ""))},
      {title: "Discarded", sort: "discarded", number: true, cell: (row) => count(row.discarded)},
    ],
    acts: (row, reload) => [act("Messages", () => peek(row.queue, below(row.href, "messages")), {describe: `Messages of ${row.queue}`}),
      context.who.write && [
        act("Move", () => move(row.queue, row.href, reload), {describe: `Move messages of ${row.queue}`}),
        act("Purge", () => purge(row.queue, row.href, row.waiting, reload), {danger: true, describe: `Purge ${row.queue}`}),
        act("Delete", () => remove(row, reload), {danger: true, describe: `Delete ${row.queue}`}),
      ]],
  }, context);
}

export async function purge(name, href, waiting, reload) {
  const given = await ask({title: `Drop what waits in ${name}?`, action: "Purge", danger: true,
    text: `${count(waiting)} messages are lost. What consumers have already stays theirs. This cannot be undone; Move takes them elsewhere instead.`});
  if (!given) return;
  await attempt(async () => {
    const done = await send("POST", below(href, "purge"), {});
    notice(`${count(done.messages)} messages of ${name} were dropped.`);
    reload();
  });
}

export async function move(name, href, reload, to = "") {
  const given = await ask({title: `Move messages of ${name}`, action: "Move", content: h("div", {class: "form"},
    field("To the queue (empty: to the topic that each was published to)", h("input", {name: "to", value: to, spellcheck: "false"}), {class: "full"}),
    field("How many at most (empty: all)", h("input", {name: "count", type: "number", min: "1"}), {class: "full"}))});
  if (!given) return;
  await attempt(async () => {
    const done = await send("POST", below(href, "move"), {to: given.to || null, count: given.count ? Number(given.count) : null});
    notice(`${count(done.messages)} messages were moved${done.stopped ? `, then it stopped: ${done.stopped}` : ""}.`);
    reload();
  });
}

async function remove(row, reload) {
  const force = h("input", {type: "checkbox", name: "force", value: "true"});
  const given = await ask({title: `Delete the queue ${row.queue}?`, action: "Delete", danger: true,
    text: "It is refused while it has messages or consumers.",
    content: h("label", {class: "inline"}, force, h("span", null, `delete it anyway, with its ${count(row.waiting)} messages`))});
  if (given && await attempt(() => send("DELETE", row.href, undefined, given.force ? {force: true} : {}))) {
    notice(`The queue ${row.queue} was deleted.`);
    reload();
  }
}
