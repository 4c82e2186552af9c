// The one way to the server: JSON over HTTP, with the credentials of the session.

import { signal } from "./html.js";

// The page lies one step below the server's routes, whatever path a proxy puts in front of both.
const ROOT = new URL("../", location.href.split("#")[0]);
const KEY = "tandemq-token";
const PATIENCE = 30_000; // ms

export const credentials = signal(sessionStorage.getItem(KEY)); // header Authorization, or null
export const refused = signal(false); // the server wants other credentials than these
export const away = signal(false); // the server does not answer

export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Sign in with a token, kept until the tab is closed, or with a password, until it is reloaded. */
export function signIn(header, keep) {
  if (keep) sessionStorage.setItem(KEY, header);
  else sessionStorage.removeItem(KEY);
  credentials.value = header;
  refused.value = false;
}

export function signOut() {
  sessionStorage.removeItem(KEY);
  credentials.value = null;
}

export const get = (path, query, signal) => call("GET", path, { query, signal });
export const post = (path, body = {}) => call("POST", path, { body });
export const put = (path, body) => call("PUT", path, { body });
export const remove = (path) => call("DELETE", path, {});

/** The path of a route, with each part encoded: path`queues/${name}/pause`. */
export function path(parts, ...values) {
  return parts.reduce((made, part, i) => made + encodeURIComponent(values[i - 1]) + part);
}

async function call(method, route, { query, body, signal }) {
  const url = new URL(route, ROOT);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  const headers = credentials.value ? { Authorization: credentials.value } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(PATIENCE);
  let response, text;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      credentials: "omit",
      cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    away.value = true;
    throw new Refusal(0, "The server does not answer");
  }
  away.value = false;
  return understood(response.status, text);
}

function understood(status, text) {
  let told;
  try {
    told = exact(text);
  } catch {
    throw new Refusal(status, `The server answered ${status} without JSON`);
  }
  if (status === 401) {
    refused.value = true;
    throw new Refusal(status, "Sign in first");
  }
  if (status >= 400 || told?.ok === false) throw new Refusal(status, told?.error ?? `Error ${status}`);
  return told?.data ?? told;
}

/** JSON whose numbers keep all their digits, where the browser can do that. */
function exact(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  );
}
