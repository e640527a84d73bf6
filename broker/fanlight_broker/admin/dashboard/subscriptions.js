// Subscriptions: all, what a topic or a filter has to do with them, which are redundant and which cost most.

import {field, h, head, select} from "./dom.js";
import {count} from "./format.js";
import {list} from "./list.js";

export const title = "Subscriptions";

const VIEWS = {
  all: ["All", "Every subscription."],
  topic: ["By topic", "Those that a message on this topic reaches."],
  filter: ["By filter", "How subscriptions lie to a filter: which it covers, which cover it."],
  redundant: ["Redundant", "Those of which another subscription of the same client gets all messages anyway."],
  costly: ["Most expensive", "Filters with the most # between words, which are the dearest to match; then by what was delivered."],
};

export function render(main, context) {
  const {query} = context;
  const view = query.view in VIEWS ? query.view : "all";
  const [, lead] = VIEWS[view];
  const tabs = h("div", {class: "row tabs", role: "navigation", "aria-label": "Views"}, Object.entries(VIEWS).map(([name, [label]]) =>
    h("a", {href: `#/subscriptions?view=${name}`, class: "tab", "aria-current": name === view ? "page" : null}, label)));
  const body = h("div");
  const asks = view === "topic" || view === "filter";
  const text = h("input", {name: view, value: query[view] ?? "", required: true, spellcheck: "false", autocapitalize: "none",
    placeholder: view === "topic" ? "stock.nasdaq.AAPL" : "stock.nasdaq.*"});
  const syntax = select([["amqp", "dots"], ["mqtt", "slashes"]], {name: "syntax"});
  syntax.value = query.syntax ?? "amqp";
  const relation = select([["any", "have topics in common with it"], ["covered", "are covered by it"], ["covers", "cover it"], ["equal", "are equal to it"]], {name: "relation"});
  relation.value = query.relation ?? "any";
  const form = asks && h("section", {class: "card"}, h("form", {class: "form", onsubmit: (event) => {
    event.preventDefault();
    location.hash = `#/subscriptions?${new URLSearchParams({view, [view]: text.value, syntax: syntax.value, ...(view === "filter" && {relation: relation.value})})}`;
  }}, field(view === "topic" ? "Topic" : "Filter", text), field("Written with", syntax), view === "filter" && field("Those that", relation),
  h("div", null, h("button", {class: "main"}, "Show"))));
  main.replaceChildren(head(title, lead), tabs, ...(form ? [form, h("div", {class: "gap"})] : []), body);
  if (asks && !query[view]) return null;
  const fixed = {topic: {topic: query.topic, syntax: query.syntax}, filter: {filter: query.filter, syntax: query.syntax, relation: query.relation},
    redundant: {redundant: "true"}}[view] ?? {};
  return list(body, {
    path: "api/v1/subscriptions", name: "subscriptions", search: "Client, user or filter", fixed, query,
    sort: view === "costly" ? "searching" : null,
    columns: [
      {title: "Filter", sort: "filter", cell: (row) => [h("code", null, row.filter), row.where && h("div", {class: "small"}, "where ", h("code", null, row.where))]},
      {title: "Client", sort: "client", cell: (row) => [row.client, row.group && h("div", {class: "muted small"}, `group ${row.group}`)]},
      {title: "Written as", cell: (row) => row.syntax},
      {title: "Delivered", sort: "delivered", number: true, cell: (row) => count(row.delivered)},
      {title: "Dropped", sort: "dropped", number: true, cell: (row) => count(row.dropped)},
      ...(view === "redundant" ? [{title: "Covered by", cell: (row) => h("code", null, row.redundant_by)}] : []),
      ...(view === "costly" ? [{title: "# between words", sort: "searching", number: true, cell: (row) => count(row.searching)}] : []),
    ],
  }, context);
}
