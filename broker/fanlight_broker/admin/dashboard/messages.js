// Messages that wait somewhere, shown in a dialog.

import {get} from "./api.js";
import {attempt, show} from "./dialog.js";
import {h} from "./dom.js";
import {bytes, count, seconds} from "./format.js";

export function payload(message) {
  if (message.payload !== undefined && message.payload !== null) return h("code", null, message.payload);
  return message.payload_base64 ? h("code", {class: "muted"}, `base64: ${message.payload_base64.slice(0, 200)}`) : h("span", {class: "muted"}, "empty");
}

export function peek(name, address) {
  return attempt(async () => {
    const {items, total} = await get(address, {limit: 50, payload_bytes: 512});
    show(`Messages of ${name}`, h("p", {class: "muted"}, `The oldest ${count(items.length)} of ${count(total)}. Looking at them changes nothing.`),
      h("div", {class: "scroll tall"}, h("table", null,
        h("thead", null, h("tr", null, ["Topic", "Payload", "Size", "Attempts", "Waits for"].map((each) => h("th", {scope: "col"}, each)))),
        h("tbody", null, items.map((each) => h("tr", null, h("td", null, h("code", null, each.topic)), h("td", null, payload(each)),
          h("td", {class: "number"}, bytes(each.size)), h("td", {class: "number"}, count(each.attempt)), h("td", {class: "number"}, seconds(each.waited_seconds))))))));
  });
}

// The address of a row's messages: its own, with a word more in front of its query.
export function below(href, word) {
  const [path, query] = href.split("?");
  return `${path}/${word}${query ? `?${query}` : ""}`;
}
