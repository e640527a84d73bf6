// A list of the API as a table: searched, sorted and paged by the broker, so a million rows cost no more than a page.
//
//   list(element, {
//     path: "api/v1/connections", name: "connections", search: "Client, user, address",
//     columns: [{title: "Client", sort: "client", cell: (row) => row.client}, {title: "Sent", number: true, ...}],
//     filters: [element with name and value, ...], fixed: {redundant: true}, acts: (row, reload) => [buttons],
//   }, context)
//
// It is fetched again every few seconds, unless a dialog is open. Returns what ends it.

import {every, get} from "./api.js";
import {fill, h} from "./dom.js";
import {count} from "./format.js";

const AGAIN = 5_000; // ms
const LIMIT = 50;

export function list(main, {path, name, search = "", columns, filters = [], fixed = {}, acts = null, sort = null, order = "desc", query = {}}, {failed}) {
  const state = {sort, order, cursors: [null]};
  const box = h("input", {type: "search", placeholder: search, "aria-label": `Search ${name}`, value: query.q ?? ""});
  const body = h("div", {class: "scroll"});
  const pager = h("div", {class: "pager"});
  let stop = null;
  let last = null;
  let asked = true; // by somebody, and not by the clock

  function begin() {
    state.cursors = [null];
    again();
  }

  function again() {
    stop?.();
    asked = true;
    stop = every(AGAIN, load, failed);
  }

  async function load(signal) {
    const waits = !asked && document.querySelector("dialog[open]") !== null;
    asked = false;
    if (waits) return; // somebody is about to do something with what is shown
    const chosen = Object.fromEntries(filters.map((each) => [each.name, each.type === "checkbox" ? (each.checked ? "true" : "") : each.value]));
    last = await get(path, {limit: LIMIT, q: box.value, cursor: state.cursors.at(-1), ...(state.sort && {sort: state.sort, order: state.order}), ...chosen, ...fixed}, signal);
    failed(null);
    draw();
  }

  function header(column) {
    if (!column.sort) return h("th", {scope: "col", class: column.number ? "number" : null}, column.title);
    const sorted = state.sort === column.sort ? (state.order === "asc" ? "ascending" : "descending") : null;
    return h("th", {scope: "col", class: column.number ? "number" : null, "aria-sort": sorted}, h("button", {type: "button", onclick: () => {
      const first = column.number ? "desc" : "asc";
      state.order = state.sort === column.sort ? (state.order === "asc" ? "desc" : "asc") : first;
      state.sort = column.sort;
      begin();
    }}, column.title));
  }

  function draw() {
    const {items, total, next, complete} = last;
    const focused = document.activeElement?.closest?.("th")?.textContent;
    fill(body, items.length === 0 ? h("p", {class: "empty"}, box.value ? `No ${name} like this.` : `No ${name}.`) : h("table", null,
      h("thead", null, h("tr", null, columns.map(header), acts && h("th", {scope: "col"}, h("span", {class: "sr"}, "Actions")))),
      h("tbody", null, items.map((row) => h("tr", null, columns.map((column) => h("td", {class: column.number ? "number" : null}, column.cell(row))),
        acts && h("td", {class: "acts"}, h("span", {class: "row acts"}, acts(row, again))))))));
    if (focused) [...body.querySelectorAll("th button")].find((each) => each.textContent === focused)?.focus();
    const named = total === 1 ? name.replace(/s\b/, "") : name; // the first word of it is a plural
    const {looked_at: looked = 0, of = 0} = last; // of a list that is made in the background: the rest comes by itself
    fill(pager, `${complete ? "" : "at least "}${count(total)} ${named}`,
      looked < of && h("span", {class: "muted"}, `looked at ${count(looked)} of ${count(of)}`), h("span", {class: "grow"}),
      h("button", {type: "button", class: "small", disabled: state.cursors.length < 2, onclick: () => { state.cursors.pop(); again(); }}, "Previous"),
      h("span", null, `page ${state.cursors.length}`),
      h("button", {type: "button", class: "small", disabled: !next, onclick: () => { state.cursors.push(next); again(); }}, "Next"));
  }

  let typing = null;
  box.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(begin, 250); });
  for (const each of filters) each.addEventListener("change", begin);
  fill(main, h("section", {class: "card"}, h("div", {class: "tools"}, search && box, filters.map((each) => each.closest("label") ?? each)), body, pager));
  again();
  return () => { clearTimeout(typing); stop?.(); };
}
