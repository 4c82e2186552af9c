// Where the page is: "#/jobs?queue=mail" is the page "jobs" with a query. Links are plain links.

import { signal } from "./html.js";

export const place = signal(read());

addEventListener("hashchange", () => {
  place.value = read();
  scrollTo(0, 0);
});

function read() {
  const [route, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...parts] = route.split("/");
  return {
    page: page || "overview",
    name: parts.length ? decoded(parts.join("/")) : "",
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed it
  }
}

export function link(page, name = "", query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const search = new URLSearchParams(given).toString();
  return `#/${page}${name && "/" + encodeURIComponent(name)}${search && "?" + search}`;
}

export function go(...where) {
  location.hash = link(...where);
}
