// Calls of the broker's HTTP API. Paths are relative to the page, so the dashboard also works behind a proxy's prefix.
//
//   await get("stats")                                   the views from before /api/v1
//   await get("api/v1/connections", {q: "feed", sort: "client"})
//   await send("DELETE", "api/v1/connections/7")
//
// An error is an ApiError with the broker's own words. `status` 0 means that the broker was not reached. The event
// `link` of `events` says whether it is reached, `login` that a login is needed; main.js listens.

export const events = new EventTarget();
let csrf = null;
let reached = null;

export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function address(path, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const bare = path.replace(/^\//, ""); // the API's own links begin with a slash
  return given.length ? `${bare}${bare.includes("?") ? "&" : "?"}${new URLSearchParams(given)}` : bare;
}

function report(up) {
  if (up === reached) return;
  reached = up;
  events.dispatchEvent(new CustomEvent("link", {detail: up}));
}

async function call(method, path, {query, body, signal} = {}) {
  let response;
  try {
    response = await fetch(address(path, query), {
      method, signal, cache: "no-store",
      headers: {
        Accept: "application/json",
        ...(body !== undefined && {"Content-Type": "application/json"}),
        ...(csrf && method !== "GET" && {"X-CSRF-Token": csrf}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    report(false);
    throw new ApiError(0, "The broker does not answer. It is asked again every few seconds.");
  }
  report(true);
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) events.dispatchEvent(new CustomEvent("login"));
  throw new ApiError(response.status, answer.detail ?? answer.error ?? `${response.status} ${response.statusText}`);
}

export function get(path, query, signal) {
  return call("GET", path, {query, signal});
}

export function send(method, path, body, query) {
  return call(method, path, {body, query});
}

// Who we are; also to find out whether a login is needed.
export async function identity() {
  return taken(await get("api/v1/login"));
}

export async function logIn(user, password) {
  return taken(await send("POST", "api/v1/login", {user, password}));
}

export async function logOut() {
  await send("DELETE", "api/v1/login");
  csrf = null;
}

function taken(who) {
  csrf = who.csrf ?? null;
  return who;
}

// Calls `work` at once and then every `milliseconds`, while the page is seen. Errors go to `failed`, and the next try
// comes later then. What takes the broker long is asked more rarely: it makes long lists with a quarter of its loop, so
// a rest of PATIENCE times as long keeps a page below 2 % of it, whatever it shows. Returns what stops it.
const PATIENCE = 15;

export function every(milliseconds, work, failed) {
  let timer = null;
  let stopped = false;
  let wait = milliseconds;
  const abort = new AbortController();
  async function turn() {
    clearTimeout(timer);
    if (!document.hidden) {
      const began = performance.now();
      try {
        await work(abort.signal);
        wait = Math.max(milliseconds, PATIENCE * (performance.now() - began));
      } catch (error) {
        if (stopped) return;
        if (!(error instanceof ApiError)) throw error;
        const took = performance.now() - began; // long, where the broker gave up what it was asked for
        wait = error.status === 0 ? Math.min(300_000, Math.max(1_000, PATIENCE * took)) : Math.min(30_000, 2 * wait);
        failed(error);
      }
    }
    if (!stopped) timer = setTimeout(turn, wait);
  }
  const shown = () => { if (!document.hidden) turn(); };
  document.addEventListener("visibilitychange", shown);
  turn();
  return () => {
    stopped = true;
    abort.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
  };
}
