// What the permissions decide about one action, by which rule, and why the rules before it do not apply.

import {ApiError, get} from "./api.js";
import {badge, facts, fill, h} from "./dom.js";

export async function decisionCard(about, signal) {
  const {syntax, ...query} = about;
  const spelled = syntax === "mqtt" ? {...query, protocol: query.protocol ?? "mqtt"} : query;
  const body = h("div");
  const who = query.connection ? `connection ${query.connection}` : query.user ?? query.client ?? "anybody";
  const card = h("section", {class: "card", "aria-label": "Permission"}, h("h2", null, `May ${who} ${query.action.replaceAll("_", " ")}?`), body);
  try {
    fill(body, decided(await get("api/v1/permissions/check", spelled, signal)));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    fill(body, h("p", null, error.status === 409 ? "No permissions are set, so everybody may do everything." : error.message));
  }
  return card;
}

const KINDS = {allowed: "good", denied: "bad"};

function decided(found) {
  const before = found.not ?? [];
  return [
    facts([
      ["Decision", badge(found.decision, KINDS[found.decision] ?? "warn")],
      ["Rule", [found.rule ? h("code", null, found.rule) : "none: the default", found.place && ` (${found.place})`]],
      found.denied_by && ["Denied by", h("code", null, found.denied_by)],
      found.by_content && ["Depends on", "the content of the message: give its fields"],
      ["File", h("code", null, found.file)],
      found.changed && ["Note", "The file has changed since it was read, so what it says is not shown."],
    ]),
    before.length > 0 && h("details", null, h("summary", null, `Why ${before.length} more salient rules do not apply`),
      h("ul", null, before.map((each) => h("li", null, h("code", null, each.rule), ` (${each.effect}): ${each.why.join("; ")}`)))),
  ];
}
