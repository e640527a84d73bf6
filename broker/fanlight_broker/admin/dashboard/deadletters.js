// Dead letters: messages that no consumer could work on, and where they are now.

import {act} from "./dialog.js";
import {h, head} from "./dom.js";
import {count} from "./format.js";
import {list} from "./list.js";
import {below, peek} from "./messages.js";
import {move, purge} from "./queues.js";

export const title = "Dead letters";

export function render(main, context) {
  const body = h("div");
  main.replaceChildren(head(title, "Queues that publish what they discard to a dead-letter topic, and the queues that keep it."), body);
  return list(body, {
    path: "api/v1/dead-letters", name: "queues with dead letters", search: "Queue", query: context.query, sort: "discarded",
    columns: [
      {title: "Queue", sort: "queue", cell: (row) => row.queue},
      {title: "Dead-letter topic", cell: (row) => h("code", null, row.dead_letter)},
      {title: "Discarded", sort: "discarded", number: true, cell: (row) => count(row.discarded)},
      {title: "Kept in", cell: (row) => (row.held_in.length ? row.held_in.map((each) => h("div", {class: "row held"},
        h("span", null, `${each.queue}: ${count(each.waiting)}`), act("Messages", () => peek(each.queue, below(each.href, "messages")), {describe: `Messages of ${each.queue}`}),
        context.who.write && [act("Send back", () => move(each.queue, each.href, () => {}, row.queue), {describe: `Move messages of ${each.queue} back to ${row.queue}`}),
          act("Purge", () => purge(each.queue, each.href, each.waiting, () => {}), {danger: true, describe: `Purge ${each.queue}`})]))
        : h("span", {class: "muted"}, "nowhere: no queue has a filter for this topic"))},
    ],
  }, context);
}
