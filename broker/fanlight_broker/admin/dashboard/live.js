// The page as a client of the broker: the native protocol over WebSocket (clients/js), for the live tail and replays.
//
// The ports are in index.html, where the broker has written them. A login of this page is a cookie, which the native
// protocol does not know, so the password is kept in this module until the page is closed, or asked for again.

import {connect} from "./fanlight/index.js";
import {ask} from "./dialog.js";
import {field, h} from "./dom.js";

const scheme = location.protocol === "https:" ? "wss" : "ws";
let credentials = null;
let needed = false;

// What the login form was given.
export function remember(user, password) {
  credentials = {user, password};
}

export function forget() {
  credentials = null;
}

export function loginNeeded(yes) {
  needed = yes;
}

function port() {
  const ports = document.querySelector('meta[name="fanlight-sockets"]').content.split(" ").map((each) => each.split(":"));
  return Object.fromEntries(ports)[scheme];
}

export class NoSocket extends Error {}

// A client of the broker, which is to be closed. Raises NoSocket if there is no port or no password, or an error of
// the client, with a message.
export async function live() {
  const number = port();
  if (!number) throw new NoSocket(`The broker has no port for ${scheme}: of the native protocol. See the setting native_websocket.`);
  if (needed && !credentials) {
    const given = await ask({title: "Log in once more", action: "Go on", text: "The live tail connects as a client of its own, and needs the password again after the page was loaded.",
      content: h("div", {class: "form"}, field("User", h("input", {name: "user", required: true, autocomplete: "username"}), {class: "full"}),
        field("Password", h("input", {name: "password", type: "password", required: true, autocomplete: "current-password"}), {class: "full"}))});
    if (!given) throw new NoSocket("Without a password there is no live tail.");
    credentials = given;
  }
  try {
    return await connect(`${scheme}://${location.hostname}:${number}`, {name: "dashboard", reconnect: false, ...credentials});
  } catch (error) {
    forget();
    throw error;
  }
}
