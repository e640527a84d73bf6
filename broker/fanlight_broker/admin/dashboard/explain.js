// Explain: who gets a message, through which filter and which rows; who nearly does, and why not; what decides.
//
// The drawing is the look-up itself: a line for each subscription, a column for each bitmap that the topic's words
// select. A subscription gets the message if its bit is set in all of them. What the form asks is in the address, so
// a question can be sent to a colleague.

import {ApiError, get} from "./api.js";
import {decisionCard} from "./decision.js";
import {badge, field, fill, h, head, select} from "./dom.js";
import {count} from "./format.js";

export const title = "Explain";

const DRAWN = 14; // lines of those who get it, and as many of those who do not

// The name of a bitmap as people say it: "left 2 'AAPL'" is word 2, counted from 0.
function rowTitle(row) {
  const [kind, ...rest] = row.split(" ");
  const word = rest.slice(1).join(" ");
  if (kind === "length") return ["length", rest[0]];
  if (kind === "left") return [`word ${rest[0]}`, word];
  if (kind === "right") return [`word ${rest[0]} from the end`, word];
  if (kind === "any") return ["anywhere", rest.join(" ")];
  if (kind === "root") return ["first word", "named"];
  return [row, ""];
}

function order(row) {
  const [kind, at] = row.split(" ");
  return ["length", "root", "left", "right", "any", "inbox"].indexOf(kind) * 100 + (Number(at) || 0);
}

function drawing(matched, missed) {
  const lines = [...matched.slice(0, DRAWN), ...missed.slice(0, DRAWN)];
  const rows = [...new Set(lines.flatMap((line) => Object.keys(line.bits)))].sort((one, other) => order(one) - order(other));
  const after = lines.some((line) => line.where || line.refusedAfter);
  const cell = (line, row) => {
    const bit = line.bits[row];
    const text = bit === false ? "0" : "1";
    const kind = bit === undefined ? "open" : bit ? "set" : "clear";
    return h("td", {class: `bit ${kind}`, title: bit === undefined ? "asks nothing of this filter: its bit is set" : null}, h("span", null, text));
  };
  return h("div", {class: "scroll"}, h("table", {class: "bitmap"},
    h("caption", {class: "sr"}, "The bitmaps that are ANDed: a line for each subscription, 1 where its bit is set"),
    h("thead", null, h("tr", null, h("th", {scope: "col"}, "Subscription"), rows.map((row, at) => {
      const [name, word] = rowTitle(row);
      return h("th", {scope: "col", class: "bit"}, h("span", {class: "muted small"}, at ? "AND " : "", name), h("br"), h("code", null, word || " "));
    }), after && h("th", {scope: "col", class: "bit"}, h("span", {class: "muted small"}, "then"), h("br"), "selector"),
    h("th", {scope: "col", class: "bit"}, h("span", {class: "muted small"}, "="), h("br"), "gets it"))),
    h("tbody", null, lines.map((line) => h("tr", null,
      h("th", {scope: "row"}, h("code", null, line.filter), h("div", {class: "muted small"}, line.client)),
      rows.map((row) => cell(line, row)),
      after && h("td", {class: `bit ${line.refusedAfter ? "clear" : line.where ? "set" : "open"}`}, h("span", null, line.refusedAfter ? "0" : "1")),
      h("td", {class: `bit result ${line.gets ? "set" : "clear"}`}, h("span", null, line.gets ? "1" : "0")))))));
}

function receivers(matches) {
  return h("div", {class: "scroll"}, h("table", null,
    h("thead", null, h("tr", null, ["Client", "Filter", "Found by", "Rows or key"].map((each) => h("th", {scope: "col"}, each)))),
    h("tbody", null, matches.map((each) => h("tr", null,
      h("td", null, each.client, each.connection === null && [" ", badge("away")], each.group && h("div", {class: "muted small"}, `group ${each.group}`)),
      h("td", null, h("code", null, each.filter), each.where && h("div", {class: "small"}, "where ", h("code", null, each.where))),
      h("td", null, badge(each.tier, "blue")),
      h("td", null, h("code", null, each.rows.join(", ")), each.found_by.length > 0 && h("div", {class: "small muted"}, each.found_by.join(", "))))))));
}

function refusals(rows) {
  return h("div", {class: "scroll"}, h("table", null,
    h("thead", null, h("tr", null, ["Client", "Filter", "Why not"].map((each) => h("th", {scope: "col"}, each)))),
    h("tbody", null, rows.map((each) => h("tr", null, h("td", null, each.client), h("td", null, h("code", null, each.filter),
      each.where && h("div", {class: "small"}, "where ", h("code", null, each.where))), h("td", null, each.reason))))));
}

export function render(main, {query, failed}) {
  const topic = h("input", {name: "topic", required: true, placeholder: "stock.nasdaq.AAPL", value: query.topic ?? "", spellcheck: "false", autocapitalize: "none"});
  const syntax = select([["amqp", "dots (AMQP, native)"], ["mqtt", "slashes (MQTT)"]], {name: "syntax", value: query.syntax ?? "amqp"});
  syntax.value = query.syntax ?? "amqp";
  const fields = h("input", {name: "fields", placeholder: '{"price": 80}', value: query.fields ?? "", spellcheck: "false"});
  const client = h("input", {name: "client", placeholder: "why not this one?", value: query.client ?? "", spellcheck: "false", autocapitalize: "none"});
  const publisher = h("input", {name: "publisher", placeholder: "may this user publish it?", value: query.publisher ?? "", spellcheck: "false", autocapitalize: "none"});
  const answer = h("div", {class: "stack"});
  const abort = new AbortController();

  function ask(event) {
    event.preventDefault();
    const given = Object.entries({topic: topic.value, syntax: syntax.value === "amqp" ? "" : syntax.value, fields: fields.value,
      client: client.value, publisher: publisher.value}).filter(([, value]) => value);
    const hash = `#/explain?${new URLSearchParams(given)}`;
    if (hash === location.hash) show();
    else location.hash = hash;
  }

  async function show() {
    const about = {topic: query.topic, syntax: query.syntax, fields: query.fields, client: query.client};
    let found;
    try {
      found = await get("api/v1/explain", {...about, limit: 100, near: DRAWN}, abort.signal);
      failed(null);
    } catch (error) {
      if (error instanceof ApiError) failed(error);
      return;
    }
    const mine = (found.client?.why_not ?? []).map((each) => ({...each, client: found.client.name}));
    const same = (one) => mine.some((other) => other.client === one.client && other.filter === one.filter);
    const near = (found.near ?? []).filter((each) => !same(each));
    const screened = found.filtered ?? [];
    const missed = [...mine, ...near].map((each) => ({...each, gets: false, refusedAfter: Object.values(each.bits).every(Boolean)}));
    const matched = found.matches.map((each) => ({...each, gets: true}));
    fill(answer,
      h("section", {class: "card"}, h("h2", null, "The topic"),
        h("div", {class: "words"}, found.words.map((word) => h("span", {class: "word"}, word))),
        h("p", {class: "muted small"}, `${found.words.length} words; the rows of the bitmaps are chosen by them.`)),
      found.client && h("section", {class: "card"}, h("h2", null, `Why ${found.client.name} ${found.client.matching ? "gets it" : "does not get it"}`),
        !found.client.known && h("p", null, "There is no client and no session of this name, and no connection of this number.",
          found.client.alike.length > 0 && [" There is: ", found.client.alike.map((each, at) => [at > 0 && ", ", h("a", {href: `#/explain?${new URLSearchParams(Object.entries({...about, client: each}).filter(([, value]) => value))}`}, each)])]),
        found.client.known && found.client.matching === 0 && mine.length === 0 && h("p", null, "It has no subscriptions."),
        found.client.matching > 0 && h("p", null, `${count(found.client.matching)} of its subscriptions are reached.`),
        found.client.notes.length > 0 && h("ul", null, found.client.notes.map((each) => h("li", null, each))),
        mine.length > 0 && refusals(mine)),
      h("section", {class: "card"}, h("h2", null, "The look-up"),
        h("p", {class: "muted small"}, "A line is a subscription, a column a bitmap. Who has a 1 in all of them gets the message. Pale: the bitmap asks nothing of this filter."),
        lines(matched, missed)),
      h("section", {class: "card"}, h("h2", null, `Who gets it: ${count(found.total)}`),
        matched.length ? receivers(found.matches) : h("p", {class: "muted"}, "Nobody."),
        found.total > found.matches.length && h("p", {class: "muted small"}, `The first ${found.matches.length} are shown.`)),
      screened.length > 0 && h("section", {class: "card"}, h("h2", null, `Whose selector is not true: ${count(found.filtered_total)}`), refusals(screened)),
      near.length > 0 && h("section", {class: "card"}, h("h2", null, "Who nearly gets it"),
        h("p", {class: "muted small"}, `Of the first ${count(found.near_of)} subscriptions, those that fail at the fewest bitmaps.`), refusals(near)),
      await decisions());
  }

  function lines(matched, missed) {
    return matched.length + missed.length ? drawing(matched, missed) : h("p", {class: "muted"}, "There are no subscriptions.");
  }

  // What permissions say: of the publisher that was asked for, and of the client as a subscriber.
  async function decisions() {
    const shared = {topic: query.topic, syntax: query.syntax, fields: query.fields};
    const asked = [query.publisher && {action: "publish", user: query.publisher}, query.client && {action: "subscribe", client: query.client}].filter(Boolean);
    return Promise.all(asked.map((each) => decisionCard({...shared, ...each}, abort.signal)));
  }

  fill(main, head(title, "Who gets a message, through which filter, and who does not and why."),
    h("section", {class: "card"}, h("form", {class: "form", onsubmit: ask},
      field("Topic", topic), field("Written with", syntax), field("Fields (JSON, optional)", fields),
      field("Client (optional)", client), field("Publisher (user, optional)", publisher),
      h("div", null, h("button", {class: "main"}, "Explain")))), h("div", {class: "gap"}), answer);
  if (query.topic) show();
  else topic.focus();
  return () => abort.abort();
}
