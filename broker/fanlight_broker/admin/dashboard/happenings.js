// Events: what happens, as it happens: connects, refusals, limits, dead letters, what operators do.
//
// The browser's own EventSource connects again and goes on behind the last event that it got.

import {fill, h, head, badge} from "./dom.js";
import {clock} from "./format.js";

export const title = "Events";

const KINDS = ["connect", "disconnect", "slow_consumer", "refusal", "limit", "dead_letter", "reload", "admin", "drain", "trouble"];
const USUAL = new Set(["connect", "disconnect"]); // of a fleet there are many
const WRONG = {slow_consumer: "warn", refusal: "warn", limit: "warn", dead_letter: "warn", trouble: "bad", lost: "bad"};
const ROWS = 300;

export function render(main, {failed}) {
  const rows = [];
  const body = h("tbody");
  const status = h("span", {class: "muted small", role: "status"});
  const boxes = KINDS.map((kind) => h("input", {type: "checkbox", value: kind, checked: !USUAL.has(kind)}));
  let source = null;
  let painting = null;

  function paint() {
    painting = null;
    fill(body, rows.map(({kind, at, text}) => h("tr", null, h("td", null, clock(at, true)), h("td", null, badge(kind.replaceAll("_", " "), WRONG[kind] ?? "")), h("td", {class: "wide"}, text))));
  }

  function take(kind, data) {
    const {time, event, ...rest} = JSON.parse(data);
    const at = Date.parse(time);
    const said = Object.entries(rest).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "object" ? JSON.stringify(value) : value}`);
    rows.unshift({kind, at: Number.isNaN(at) ? Date.now() : at, text: [(event ?? kind).replaceAll("_", " "), ...said].join(" · ")});
    rows.length = Math.min(rows.length, ROWS);
    painting ??= setTimeout(paint, 250);
  }

  function listen() {
    source?.close();
    const kinds = boxes.filter((box) => box.checked).map((box) => box.value);
    if (kinds.length === 0) {
      source = null;
      status.textContent = "Choose what to listen to.";
      return;
    }
    source = new EventSource(`api/v1/events?${new URLSearchParams({kinds: kinds.join(",")})}`);
    status.textContent = "Connecting…";
    source.addEventListener("open", () => { status.textContent = "Listening."; failed(null); });
    source.addEventListener("error", () => {
      status.textContent = source.readyState === EventSource.CLOSED ? "The broker refuses more listeners: too many pages are open." : "No connection; it is tried again.";
    });
    for (const kind of [...kinds, "lost"]) source.addEventListener(kind, ({data}) => take(kind, data));
  }

  for (const box of boxes) box.addEventListener("change", listen);
  fill(main, head(title, `What happens now, the newest first, at most ${ROWS}. The log and the audit log have all of it.`), h("section", {class: "card"},
    h("div", {class: "tools"}, KINDS.map((kind, place) => h("label", {class: "inline"}, boxes[place], h("span", null, kind.replaceAll("_", " "))))), h("div", {class: "row"}, status),
    h("div", {class: "scroll", tabindex: "0", "aria-label": "Events"}, h("table", null, h("thead", null, h("tr", null, ["Time", "Kind", "What"].map((each) => h("th", {scope: "col"}, each)))), body))));
  listen();
  return () => {
    source?.close();
    clearTimeout(painting);
  };
}
