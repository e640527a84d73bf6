// The form for user and password, in place of a page until somebody has logged in.

import {ApiError, logIn} from "./api.js";
import {field, fill, h} from "./dom.js";
import {remember} from "./live.js";

export function showLogin(main, done, reason = "") {
  const user = h("input", {name: "user", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false"});
  const password = h("input", {name: "password", type: "password", autocomplete: "current-password", required: true});
  const wrong = h("div", {class: "banner", role: "alert", hidden: !reason}, reason);
  const button = h("button", {class: "main"}, "Log in");
  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const known = await logIn(user.value, password.value);
      remember(user.value, password.value);
      done(known);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      wrong.textContent = error.message;
      wrong.hidden = false;
      password.value = "";
      password.focus();
    } finally {
      button.disabled = false;
    }
  }
  fill(main, h("section", {class: "card login", "aria-label": "Log in"}, h("h1", null, "Log in"),
    h("p", {class: "muted"}, "A user of this broker who may read or administer it (admin:read, admin:write)."), wrong,
    h("form", {class: "form", onsubmit: submit}, field("User", user), field("Password", password), button)));
  user.focus();
}
