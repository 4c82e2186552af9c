// The keyboard: / to search, g and a letter to go somewhere, j and k through a list.

import { html } from "./html.js";
import { tell } from "./parts/dialog.js";
import { go } from "./router.js";

export const PLACES = {
  o: ["overview", "Overview"],
  q: ["queues", "Queues"],
  j: ["jobs", "Jobs"],
  d: ["dead", "Dead letters"],
  s: ["schedules", "Schedules"],
  w: ["workers", "Workers"],
  b: ["subscribers", "Subscribers"],
};
const WRITES = "input, textarea, select, [contenteditable]";

let going = false; // g was pressed, and a letter is to follow

const KEYS = {
  "/": () => {
    const field = document.querySelector(".filters input");
    if (field) field.focus();
    else go("jobs");
  },
  "?": () => tell({ title: "Keys", body: html`<${List} />` }),
  j: () => step(1),
  k: () => step(-1),
  g: () => {
    going = true;
    setTimeout(() => (going = false), 1_000);
  },
};

function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.focus();
}

export function listen() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.(WRITES)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const to = going && PLACES[event.key];
    going = false;
    const act = to ? () => go(to[0]) : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

const List = () => html`<dl class="keys">
  ${[["/", "Search"], ["j, k", "Next and previous row"], ["Enter", "Open it"], ["Esc", "Leave a field or a dialog"]]
    .concat(Object.entries(PLACES).map(([key, [, label]]) => [`g ${key}`, label]))
    .map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
</dl>`;
