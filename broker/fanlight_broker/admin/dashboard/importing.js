// Import: a mosquitto.conf, and the files that it names, as files of this broker. Nothing is written to the broker's disk.

import {ApiError, send} from "./api.js";
import {badge, field, fill, h, head} from "./dom.js";
import {count} from "./format.js";

export const title = "Import";

export function render(main, {failed, who}) {
  const text = h("textarea", {name: "configuration", rows: 10, spellcheck: "false", required: true, placeholder: "listener 1883\npassword_file /etc/mosquitto/passwd"});
  const chosen = h("input", {type: "file", name: "files", multiple: true});
  const answer = h("div");
  let links = [];

  function forget() {
    links.forEach((each) => URL.revokeObjectURL(each));
    links = [];
  }

  function shown(file) {
    const link = URL.createObjectURL(new Blob([file.text], {type: "text/plain"}));
    links.push(link);
    return h("section", {class: "card"}, h("div", {class: "row"}, h("h2", null, file.name), file.secret && badge("has secrets", "warn"), h("span", {class: "grow"}),
      h("a", {href: link, download: file.name, "aria-label": `Save ${file.name}`}, "Save")),
    file.secret ? h("p", {class: "muted"}, `${count(file.text.trimEnd().split("\n").length)} lines, not shown.`) : h("pre", {class: "rule-text"}, file.text));
  }

  function list(name, lines) {
    return lines.length > 0 && h("section", {class: "card"}, h("h2", null, name), h("ul", null, lines.map((each) => h("li", null, each))));
  }

  // A chosen mosquitto.conf goes into the field, where it can be read and changed; the others are sent with it.
  async function choose() {
    for (const each of chosen.files) if (each.name === "mosquitto.conf") text.value = await each.text();
  }

  async function convert(event) {
    event.preventDefault();
    const others = [...chosen.files].filter((each) => each.name !== "mosquitto.conf");
    const files = Object.fromEntries(await Promise.all(others.map(async (each) => [each.name, await each.text()])));
    forget();
    try {
      const made = await send("POST", "api/v1/import/mosquitto", {configuration: text.value, files});
      failed(null);
      fill(answer, list("Has no equivalent", made.left_out), list("What is different", made.notes), made.files.map(shown));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      fill(answer);
      failed(error);
    }
  }

  chosen.addEventListener("change", choose);
  fill(main, head(title, "What Fanlight makes of a mosquitto.conf: listeners, users, permissions, bridges, persistence, and what has no equivalent."),
    who.write ? h("section", {class: "card"}, h("form", {class: "form", onsubmit: convert},
      field("mosquitto.conf", text, {class: "full"}), field("Files: mosquitto.conf, and those that it names (passwords, ACLs, conf.d)", chosen, {class: "full"}),
      h("div", null, h("button", {class: "main"}, "Convert"))),
    h("p", {class: "muted small"}, "Nothing is put in force. Save the files beside each other on the broker's machine, try them with ", h("code", null, "fanlightd check-config --config fanlight.toml"), ", and start the broker with them."))
      : h("p", {class: "empty"}, "This needs the permission admin:write."), h("div", {class: "gap"}), answer);
  return forget;
}
