// The frame of the dashboard: which page is shown, by the part of the address behind #; login, theme, and whether the
// broker is reached.
//
// A page is a module with `title` and `render(main, context)`, which fills <main> and returns what ends it (timers,
// streams). `context` has: query (of the address), failed(error or null) for the banner at the top, who (we are).

import {ApiError, events, get, identity, logOut} from "./api.js";
import {fill, h} from "./dom.js";
import {showLogin} from "./login.js";
import {forget, loginNeeded} from "./live.js";
import {theme} from "./theme.js";
import * as archive from "./archive.js";
import * as bridges from "./bridges.js";
import * as connections from "./connections.js";
import * as deadletters from "./deadletters.js";
import * as explain from "./explain.js";
import * as happenings from "./happenings.js";
import * as importing from "./importing.js";
import * as overview from "./overview.js";
import * as permissions from "./permissions.js";
import * as queues from "./queues.js";
import * as sessions from "./sessions.js";
import * as settings from "./settings.js";
import * as slow from "./slow.js";
import * as subscriptions from "./subscriptions.js";
import * as topics from "./topics.js";

const PAGES = {overview, topics, explain, queues, deadletters, archive, connections, sessions, subscriptions, slow, bridges, events: happenings, permissions, settings, import: importing};
const GROUPS = {
  "": ["overview"],
  Messages: ["topics", "explain", "queues", "deadletters", "archive"],
  Clients: ["connections", "sessions", "subscriptions", "slow"],
  Broker: ["events", "bridges", "permissions", "settings", "import"],
};

const main = document.getElementById("main");
const navigation = document.getElementById("navigation");
const menu = document.getElementById("menu");
const link = document.getElementById("link");
const logout = document.getElementById("logout");
let who = {login_required: false, write: true, anonymous: true};
let end = null;
let loggingIn = false;

function place() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {name: name in PAGES ? name : "overview", query: Object.fromEntries(new URLSearchParams(query ?? ""))};
}

function leave() {
  end?.();
  end = null;
}

function show() {
  if (loggingIn) return;
  leave();
  const {name, query} = place();
  const page = PAGES[name];
  document.title = `${page.title} – Fanlight`;
  for (const each of navigation.querySelectorAll("a")) {
    if (each.dataset.page === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  openMenu(false);
  const banner = h("div", {class: "banner", role: "alert", hidden: true});
  const body = h("div");
  fill(main, banner, body);
  const failed = (error) => {
    if (error?.status === 0) return; // the mark at the top says it
    banner.hidden = !error;
    banner.textContent = error?.message ?? "";
  };
  end = page.render(body, {query, failed, who}) ?? null;
}

function askLogin(reason) {
  leave();
  loggingIn = true;
  showLogin(main, (known) => {
    loggingIn = false;
    use(known);
    show();
  }, reason);
}

function use(known) {
  who = known;
  loginNeeded(known.login_required);
  logout.hidden = known.by !== "login";
  logout.textContent = known.by === "login" ? `Log out ${known.user}` : "";
}

function openMenu(open) {
  navigation.classList.toggle("open", open);
  menu.setAttribute("aria-expanded", String(open));
}

fill(navigation, Object.entries(GROUPS).map(([group, names]) => [
  group && h("h2", null, group),
  h("ul", null, names.map((name) => h("li", null, h("a", {href: `#/${name}`, "data-page": name}, PAGES[name].title)))),
]));

theme(document.getElementById("theme"));
menu.addEventListener("click", () => openMenu(!navigation.classList.contains("open")));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") openMenu(false); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
logout.addEventListener("click", async () => {
  await logOut();
  forget();
  askLogin("");
});
addEventListener("hashchange", show);
events.addEventListener("login", () => { if (!loggingIn) askLogin(""); });
events.addEventListener("link", ({detail: up}) => {
  link.className = up ? "up" : "down";
  link.textContent = up ? "Live" : "No connection to the broker";
});

async function begin() {
  try {
    use(await identity());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 0) {
      setTimeout(begin, 1_000);
      return;
    }
  }
  if (who.login_required && who.anonymous) {
    askLogin("");
    return;
  }
  show();
  const {version} = await get("api/v1").catch(() => ({}));
  document.getElementById("broker").textContent = [location.host, version].filter(Boolean).join(" · ");
}

begin();
