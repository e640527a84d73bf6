// Permissions: try a decision; the rules with how often each decided; those that have never.

import {ApiError, get} from "./api.js";
import {decisionCard} from "./decision.js";
import {badge, field, fill, h, head, select} from "./dom.js";
import {count} from "./format.js";

export const title = "Permissions";

const ACTIONS = ["publish", "subscribe", "retain", "will", "connect", "request", "replay", "queue", "admin_read", "admin_write"];
const PAGE = 100;

export function render(main, {failed, query}) {
  const inputs = Object.fromEntries(["user", "group", "client", "topic", "fields"].map((name) => [name, h("input", {name, spellcheck: "false", autocapitalize: "none", value: query[name] ?? ""})]));
  const action = select(ACTIONS.map((each) => [each, each.replaceAll("_", " ")]), {name: "action"});
  const answer = h("div");
  const rules = h("section", {class: "card"});
  const used = select([["", "all rules"], ["true", "rules that have decided"], ["false", "rules that have never decided"], ["shadowed", "rules that can never decide (shadowed)"]], {"aria-label": "Which rules"});
  let offset = 0;

  async function test(event) {
    event.preventDefault();
    const about = Object.fromEntries(Object.entries({action: action.value, ...Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]))}).filter(([, value]) => value));
    fill(answer, h("div", {class: "gap"}), await decisionCard(about));
  }

  // Rules that can never decide, because more salient ones decide all that they speak of.
  async function loadShadowed() {
    const found = await get("api/v1/permissions", {shadowed: "true"});
    failed(null);
    fill(rules, h("div", {class: "row"}, h("h2", null, "Shadowed rules"), h("span", {class: "grow"}), h("label", null, used)),
      found.changed ? h("p", {class: "muted"}, "The file has changed since it was read. Reload it first.")
        : !found.complete ? h("p", {class: "muted"}, "The file has too many rules to be looked at here: fanlightd permissions check does it.")
          : found.shadowed.length === 0 ? h("p", {class: "empty"}, "No rule is shadowed by others.") : h("div", {class: "scroll"}, h("table", null,
            h("thead", null, h("tr", null, ["Rule", "Effect", "Decided before it by"].map((each) => h("th", {scope: "col"}, each)))),
            h("tbody", null, found.shadowed.map((rule) => h("tr", null, h("td", null, rule.rule), h("td", null, badge(rule.effect, rule.effect === "allow" ? "good" : "bad")),
              h("td", null, rule.by.length ? rule.by.join(", ") : "nothing: its condition is never true")))))));
  }

  async function load() {
    let found;
    try {
      if (used.value === "shadowed") return await loadShadowed();
      found = await get("api/v1/permissions", {limit: PAGE, offset, used: used.value});
      failed(null);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 409) failed(error);
      fill(rules, h("h2", null, "Rules"), h("p", {class: "muted"}, error.status === 409 ? "No permissions are set, so everybody may do everything. The setting permissions names a file of rules." : error.message));
      return undefined;
    }
    const defaults = Object.entries(found.defaults).map(([name, effect]) => `${name.replaceAll("_", " ")} ${effect}`);
    fill(rules, h("div", {class: "row"}, h("h2", null, `${count(found.total)} rules`), h("span", {class: "grow"}), h("label", null, used)),
      h("p", {class: "muted small"}, `Of ${found.file}. The most salient rule that applies decides. Where none does: ${defaults.join(", ")}.`),
      found.rules.length === 0 ? h("p", {class: "empty"}, "No rule is like this.") : h("div", {class: "scroll"}, h("table", null,
        h("thead", null, h("tr", null, h("th", {scope: "col"}, "Rule"), h("th", {scope: "col"}, "Effect"), h("th", {scope: "col"}, "What it says"),
          h("th", {scope: "col", class: "number"}, "Decided"), h("th", {scope: "col", class: "number"}, "Refused"))),
        h("tbody", null, found.rules.map((rule) => h("tr", null, h("td", null, rule.rule, h("div", {class: "muted small"}, `line ${rule.line}`)),
          h("td", null, badge(rule.effect, rule.effect === "allow" ? "good" : "bad")), h("td", {class: "wide"}, h("pre", {class: "rule-text"}, rule.text ?? "")),
          h("td", {class: "number"}, rule.decisions ? count(rule.decisions) : badge("never", "warn")), h("td", {class: "number"}, count(rule.refused))))))),
      found.total > PAGE && h("div", {class: "pager"}, `${offset + 1} to ${Math.min(offset + PAGE, found.total)}`, h("span", {class: "grow"}),
        h("button", {type: "button", class: "small", disabled: offset === 0, onclick: () => { offset -= PAGE; load(); }}, "Previous"),
        h("button", {type: "button", class: "small", disabled: offset + PAGE >= found.total, onclick: () => { offset += PAGE; load(); }}, "Next")));
    return undefined;
  }

  used.addEventListener("change", () => { offset = 0; load(); });
  fill(main, head(title, "Who may do what, by which rule, and which rules have never decided anything."),
    h("section", {class: "card"}, h("h2", null, "Try a decision"), h("form", {class: "form", onsubmit: test},
      field("Action", action), field("User", inputs.user), field("Groups", inputs.group), field("Client", inputs.client), field("Topic or filter", inputs.topic),
      field("Fields (JSON)", inputs.fields), h("div", null, h("button", {class: "main"}, "Decide"))), answer), rules);
  load();
  return null;
}
