// Archive: how much is kept of what, and a window of it replayed to the page.

import {ApiError, every, get} from "./api.js";
import {badge, facts, field, fill, h, head, select} from "./dom.js";
import {bytes, count, short} from "./format.js";
import {tail} from "./tail.js";

export const title = "Archive";

const MOST = 200; // messages of a replay, which are as many as are shown

export function render(main, {failed}) {
  const body = h("section", {class: "card"});
  const messages = tail();
  const filter = h("input", {name: "filter", required: true, value: "#", spellcheck: "false", autocapitalize: "none"});
  const where = h("input", {name: "where", placeholder: "price > 100", spellcheck: "false"});
  const since = select([["60", "a minute"], ["300", "5 minutes"], ["3600", "an hour"], ["86400", "a day"]], {name: "since"});
  since.value = "300";
  let before = null;

  const form = h("form", {class: "form", onsubmit: (event) => {
    event.preventDefault();
    messages.replay(filter.value, {since: Date.now() / 1_000 - Number(since.value), where: where.value || undefined}, MOST);
  }}, field("Filter", filter), field("Selector (optional)", where), field("Of the last", since),
  h("div", {class: "row"}, h("button", {class: "main"}, "Replay"), h("button", {type: "button", onclick: () => messages.stop("Stopped.")}, "Stop")));

  fill(main, head(title, "What is kept of the messages that were published, for replays and for analysis."), body,
    h("section", {class: "card"}, h("h2", null, "Replay a window"), h("p", {class: "muted small"}, `The first ${MOST} messages, from the archive; nothing is delivered to anybody else.`), form, h("div", {class: "gap"}), messages.element));

  const stop = every(5_000, async (signal) => {
    let found;
    try {
      found = await get("api/v1/archive", {}, signal);
      failed(null);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      fill(body, h("p", {class: "empty"}, "There is no archive. The setting archive names a folder for it."));
      return;
    }
    const now = Date.now();
    const written = found.archive_end;
    const rate = before && written >= before.written ? (written - before.written) / ((now - before.now) / 1_000) : null;
    before = {written, now};
    const lost = found.archive_dropped + found.archive_lost + found.archive_unspellable;
    fill(body, found.trouble && h("div", {class: "banner"}, found.trouble), h("div", {class: "grid"}, facts([
      ["Folder", h("code", null, found.folder)],
      ["Filters", found.filters.map((each) => h("div", null, h("code", null, each.filter)))],
      ["Durability", found.durability],
      ["Receipts", found.receipts ? "wait for it" : "do not wait for it"],
    ]), facts([
      ["Messages", `${count(written - found.archive_start)}: offsets ${count(found.archive_start)} to ${count(written)}`],
      ["Size", `${bytes(found.archive_bytes)} in ${count(found.archive_segments)} segments`],
      ["Rate", rate === null ? "–" : `${short(Math.round(rate))}/s`],
    ]), facts([
      ["Not archived", lost ? badge(count(lost), "bad") : "0"],
      ["Waiting to be written", bytes(found.archive_buffer_bytes)],
      ["Replays now", `${count(found.archive_replays)}; ${count(found.archive_replayed)} messages so far`],
    ])));
  }, failed);
  return () => { stop(); messages.stop(); };
}
