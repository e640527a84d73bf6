// Topics: a tree of their words, what is retained on them, a live tail, and publishing.
//
// The tree is made of the topics with the most messages a second and of the retained ones, a thousand each. A branch's
// elements are made when it is opened.

import {every, get, send} from "./api.js";
import {act, ask, attempt, notice} from "./dialog.js";
import {facts, field, fill, h, head, select} from "./dom.js";
import {bytes, count, seconds, short} from "./format.js";
import {payload} from "./messages.js";
import {tail} from "./tail.js";

export const title = "Topics";

const MOST = 1_000;
const SEPARATORS = {amqp: ".", mqtt: "/"};

function plant() {
  return {children: new Map(), rate: 0, messages: 0, retained: 0, topic: null};
}

function grow(tree, {topic, syntax, per_second: rate = 0, messages = 0}, retained) {
  const words = topic.split(SEPARATORS[syntax]);
  let node = tree;
  for (const [at, word] of words.entries()) {
    if (!node.children.has(word)) node.children.set(word, {...plant(), word});
    node = node.children.get(word);
    node.rate += rate ?? 0;
    node.messages += messages;
    node.retained += retained;
    node.below ??= [`${words.slice(0, at + 1).join(SEPARATORS[syntax])}${SEPARATORS[syntax]}#`, syntax]; // the filter of its branch
  }
  node.topic ??= topic;
  node.syntax ??= syntax;
  node.holds ||= retained > 0;
}

export function render(main, {failed, who, query}) {
  const search = h("input", {type: "search", placeholder: "Words of a topic", "aria-label": "Search topics"});
  const list = h("ul", {class: "tree", "aria-label": "Topics"});
  const chosen = h("div");
  const open = new Set(); // paths
  let tree = plant();
  let selected = null;

  async function load(signal) {
    const [hot, kept] = await Promise.all([get("api/v1/topics", {limit: MOST, sort: "per_second"}, signal), get("api/v1/retained", {limit: MOST}, signal)]);
    failed(null);
    tree = plant();
    for (const each of hot.items) grow(tree, each, 0);
    for (const each of kept.items) if (!each.own) grow(tree, each, 1);
    draw();
  }

  function matches(node, text) {
    return !text || (node.topic ?? "").toLowerCase().includes(text) || [...node.children.values()].some((each) => matches(each, text));
  }

  function branch(parent, path, text) {
    return [...parent.children.values()].filter((node) => matches(node, text))
      .sort((one, other) => other.rate - one.rate || other.messages - one.messages || (one.word < other.word ? -1 : 1)).slice(0, MOST)
      .map((node) => {
        const here = `${path}\n${node.word}`;
        const leaf = node.children.size === 0;
        const opened = !leaf && (open.has(here) || text !== "");
        return h("li", null, h("button", {type: "button", class: "node", "data-path": here, "aria-expanded": leaf ? null : String(opened), "aria-pressed": String(selected !== null && selected === node.topic),
          onclick: () => {
            if (!leaf) opened ? open.delete(here) : open.add(here);
            if (node.topic !== null) choose(node.topic, node.syntax);
            draw();
          }}, h("span", {class: "twist"}, leaf ? "" : opened ? "▾" : "▸"), h("span", {class: "name"}, node.word || "(empty)"),
        h("span", {class: "grow"}), node.retained > 0 && h("span", {class: "muted small", title: "retained messages"}, leaf ? "retained" : `${count(node.retained)} retained`),
        h("span", {class: "muted small"}, node.rate ? `${short(Math.round(node.rate * 10) / 10)}/s` : node.messages ? short(node.messages) : "")),
        opened && h("ul", null, branch(node, here, text),
          who.write && node.retained > 0 && h("li", null, act("Clear what is retained here", () => clearTree(...node.below), {danger: true, describe: `Clear all retained messages of ${node.below[0]}`}))));
      });
  }

  function draw() {
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    const rows = branch(tree, "", search.value.trim().toLowerCase());
    fill(list, rows.length ? rows : h("li", {class: "empty"}, "No topic yet."));
    if (focused !== null) [...list.querySelectorAll(".node")].find((each) => each.dataset.path === focused)?.focus();
  }

  // What is retained on a topic.

  const messages = tail();
  const filter = h("input", {name: "filter", required: true, value: query.filter ?? "#", spellcheck: "false", autocapitalize: "none"});
  const where = h("input", {name: "where", placeholder: "price > 100", spellcheck: "false"});
  const topic = h("input", {name: "topic", required: true, spellcheck: "false", autocapitalize: "none"});
  const syntax = select([["amqp", "dots"], ["mqtt", "slashes"]], {name: "syntax"});
  const text = h("textarea", {name: "payload", rows: 3});
  const retain = h("input", {type: "checkbox", name: "retain"});

  function choose(name, spelled) {
    selected = name;
    topic.value = filter.value = name;
    syntax.value = spelled;
    retained(name, spelled);
  }

  function address(name) {
    return `api/v1/retained/${encodeURIComponent(name)}`;
  }

  async function retained(name, spelled) {
    const found = await get(address(name), {syntax: spelled}).catch(() => null);
    if (selected !== name) return;
    fill(chosen, h("h2", {class: "mono"}, name), found === null ? h("p", {class: "muted"}, "Nothing is retained on it.") : [
      facts([["Retained value", payload(found)], ["Size", bytes(found.size)], ["QoS", found.qos], found.expires_seconds !== null && ["Expires in", seconds(found.expires_seconds)],
        found.content_type && ["Content type", found.content_type], ["From", found.client]]),
      who.write && h("div", {class: "row"}, act("Clear", () => clear(name, spelled, found), {danger: true, describe: `Clear the retained message of ${name}`}))],
    h("div", {class: "row"}, h("a", {href: `#/explain?${new URLSearchParams({topic: name, syntax: spelled})}`}, "Who gets this topic?")));
  }

  async function clear(name, spelled, before) {
    if (!await ask({title: `Clear the retained message of ${name}?`, action: "Clear", danger: true, text: "Clients that subscribe from now on do not get it."})) return;
    await attempt(async () => {
      await send("DELETE", address(name), undefined, {syntax: spelled});
      notice("The retained message was cleared.", before.cut ? null : async () => {
        const {payload, payload_base64, qos, content_type, expires_seconds, headers} = before;
        await send("PUT", address(name), {...(payload ? {payload} : {payload_base64}), qos, headers, ...(content_type && {content_type}), ...(expires_seconds > 0 && {expiry_seconds: expires_seconds})}, {syntax: spelled});
        retained(name, spelled);
      });
      retained(name, spelled);
    });
  }

  async function clearAll() {
    const spelled = select([["amqp", "dots"], ["mqtt", "slashes"]], {name: "syntax"});
    spelled.value = syntax.value;
    const given = await ask({title: "Clear retained messages by a filter", action: "Find them", text: "They are counted first.",
      content: h("div", {class: "form"}, field("Filter", h("input", {name: "filter", required: true, value: filter.value === "#" ? "" : filter.value, spellcheck: "false"})),
        field("Written with", spelled))});
    if (given) await clearTree(given.filter, given.syntax);
  }

  async function clearTree(wanted, spelled) {
    await attempt(async () => {
      const {total, complete} = await get("api/v1/retained", {filter: wanted, syntax: spelled, limit: 1});
      if (total === 0) return notice(`No retained message matches ${wanted}.`);
      if (!await ask({title: `Clear ${complete ? "" : "at least "}${count(total)} retained messages?`, action: "Clear all of them", danger: true,
        text: `All that ${wanted} matches. This cannot be undone.`})) return;
      const {cleared} = await send("DELETE", "api/v1/retained", undefined, {filter: wanted, syntax: spelled});
      notice(`${count(cleared)} retained messages were cleared.`);
      await load().catch(failed);
    });
  }

  async function publish(event) {
    event.preventDefault();
    await attempt(async () => {
      const done = await send("POST", "api/v1/messages", {topic: topic.value, syntax: syntax.value, payload: text.value, retain: retain.checked});
      notice(`Published; ${count(done.subscribers)} subscriptions got it.`);
      if (retain.checked) choose(topic.value, syntax.value);
    });
  }

  search.addEventListener("input", draw);
  fill(main, head(title, "What is published and retained, live."), h("div", {class: "split"},
    h("section", {class: "card"}, h("div", {class: "tools"}, search), list),
    h("div", {class: "stack"},
      h("section", {class: "card"}, fill(chosen, h("p", {class: "muted"}, "Choose a topic to see what is retained on it."))),
      h("section", {class: "card"}, h("h2", null, "Live tail"), h("form", {class: "form", onsubmit: (event) => {
        event.preventDefault();
        messages.follow(filter.value, {syntax: syntax.value, where: where.value || undefined});
      }}, field("Filter", filter), field("Selector (optional)", where), h("div", {class: "row"}, h("button", {class: "main"}, "Follow"),
        h("button", {type: "button", onclick: () => messages.stop("Stopped.")}, "Stop"))), messages.element),
      who.write && h("section", {class: "card"}, h("h2", null, "Publish"), h("form", {class: "form", onsubmit: publish},
        field("Topic", topic), field("Written with", syntax), field("Payload", text, {class: "full"}),
        h("div", {class: "row full"}, h("label", {class: "inline"}, retain, h("span", null, "retain it")), h("span", {class: "grow"}), h("button", {class: "main"}, "Publish")))),
      who.write && h("section", {class: "card"}, h("div", {class: "row"}, h("span", null, "Many retained messages at once"), h("span", {class: "grow"}),
        h("button", {type: "button", class: "danger", onclick: clearAll}, "Clear by a filter"))))));
  const stop = every(5_000, load, failed);
  return () => { stop(); messages.stop(); };
}
