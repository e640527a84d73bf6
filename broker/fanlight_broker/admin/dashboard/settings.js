// Settings: what is in force, where it came from, and what a change needs.

import {get} from "./api.js";
import {badge, fill, h, head} from "./dom.js";

export const title = "Settings";

export function render(main, {failed}) {
  const search = h("input", {type: "search", placeholder: "Search", "aria-label": "Search settings"});
  const changed = h("input", {type: "checkbox"});
  const notes = h("div");
  const body = h("div");
  let rows = [];

  function value(row) {
    return [h("code", {class: row.value?.length > 40 ? null : "name"}, row.value ?? "not set"),
      row.waiting && h("div", {class: "small"}, badge(row.needs_restart ? "after a restart" : "after a reload", "warn"), " ", h("code", null, row.waiting))];
  }

  function draw() {
    const text = search.value.trim().toLowerCase();
    const seen = rows.filter((row) => (!changed.checked || row.place !== "default" || row.waiting)
      && (!text || `${row.name} ${row.value} ${row.place} ${row.reason}`.toLowerCase().includes(text)));
    const groups = [...new Set(seen.map((row) => row.group))];
    fill(body, seen.length === 0 && h("p", {class: "empty"}, "No setting is like this."), groups.map((group) => h("section", {class: "card"},
      h("h2", null, group), h("div", {class: "scroll"}, h("table", null,
        h("thead", null, h("tr", null, ["Setting", "Value", "From", "What it bounds or does"].map((each) => h("th", {scope: "col"}, each)))),
        h("tbody", null, seen.filter((row) => row.group === group).map((row) => h("tr", null,
          h("td", null, h("code", {class: "name"}, row.name), row.needs_restart && h("div", {class: "small muted"}, "needs a restart")),
          h("td", null, value(row)),
          h("td", null, row.place === "default" ? h("span", {class: "muted"}, "default") : row.place),
          h("td", {class: "wide"}, row.reason, h("div", {class: "small muted"}, [row.values, row.default !== null && `default ${row.default}`].filter(Boolean).join("; ")))))))))));
  }

  search.addEventListener("input", draw);
  changed.addEventListener("change", draw);
  fill(main, head(title, "What is in force, where it came from, and what a change needs. A file that changes is read again on SIGHUP."), notes,
    h("div", {class: "tools"}, search, h("label", {class: "inline"}, changed, h("span", null, "changed ones only"))), body);
  get("api/v1/settings").then((answer) => {
    rows = answer.settings;
    fill(notes, answer.problems.map((each) => h("div", {class: "banner"}, `The settings cannot be read again: ${each}`)),
      answer.warnings.map((each) => h("div", {class: "banner warn"}, each)));
    draw();
  }).catch(failed);
}
