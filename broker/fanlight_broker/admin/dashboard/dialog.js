// Asking before something is done, and saying afterwards what was done.

import {ApiError} from "./api.js";
import {h} from "./dom.js";

const NOTICE = 8_000; // ms that a notice stays, which is also how long something can be undone

// Shows a dialog. Returns a promise of the form's values, or of null if it was given up.
export function ask({title, text, action, danger = false, content = null}) {
  return new Promise((resolve) => {
    const form = h("form", {method: "dialog"}, h("h2", null, title), text && h("p", null, text), content,
      h("div", {class: "row"},
        h("button", {type: "button", onclick: () => dialog.close()}, "Cancel"),
        h("button", {class: `main ${danger ? "danger" : ""}`, value: "yes"}, action)));
    const dialog = h("dialog", {"aria-label": title}, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close("yes");
    });
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Shows something to be read in a dialog.
export function show(title, ...content) {
  const dialog = h("dialog", {class: "large", "aria-label": title}, h("h2", null, title), content,
    h("div", {class: "row"}, h("button", {type: "button", onclick: () => dialog.close()}, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// A line at the lower edge; with `undo` it has a button that does so.
export function notice(text, undo = null) {
  const line = h("div", {class: "notice"}, h("span", null, text),
    undo && h("button", {type: "button", class: "small", onclick: () => { line.remove(); attempt(undo); }}, "Undo"));
  document.getElementById("notices").append(line);
  setTimeout(() => line.remove(), NOTICE);
}

// Does something that may be refused, and says so then. Returns whether it was done.
export async function attempt(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    notice(error.message);
    return false;
  }
}

// A row's button.
export function act(label, work, {danger = false, describe = label} = {}) {
  return h("button", {type: "button", class: `small ${danger ? "danger" : ""}`, "aria-label": describe, onclick: work}, label);
}
