// The small things that every page is made of.

import { ago, moment, short } from "../format.js";
import { html, useState } from "../html.js";

export const Chip = ({ state }) => html`<span class="chip chip-${state}">${state}</span>`;

export const Ago = ({ at }) =>
  html`<time datetime=${at ? new Date(at).toISOString() : ""} title=${moment(at)}>${ago(at)}</time>`;

export const Tile = ({ label, value, href, kind = "", note = "" }) => {
  const inner = html`<span class="tile-label">${label}</span>
    <span class="tile-value">${typeof value === "number" ? short(value) : value ?? "–"}</span>
    ${note && html`<span class="tile-note">${note}</span>`}`;
  return href
    ? html`<a class="tile ${kind}" href=${href}>${inner}</a>`
    : html`<div class="tile ${kind}">${inner}</div>`;
};

export const Card = ({ title, aside, children, id }) => html`<section class="card" id=${id}>
  ${title && html`<header class="card-head"><h2>${title}</h2><div class="aside">${aside}</div></header>`}
  ${children}
</section>`;

export const Head = ({ title, lead, children }) => html`<header class="page-head">
  <div class="page-title"><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
  <div class="actions">${children}</div>
</header>`;

export const Note = ({ children, kind = "" }) => html`<p class="note ${kind}">${children}</p>`;

/** What stands where data will be: a word of why it is not there, or nothing. */
export function Pending({ poll, empty, what = "nothing" }) {
  if (poll.error) return html`<${Note} kind="bad">${poll.error.message}<//>`;
  if (!poll.data) return html`<${Note}>Loading…<//>`;
  return empty ? html`<${Note}>${what}<//>` : null;
}

export function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  if (!navigator.clipboard) return null;
  return html`<button class="quiet" onClick=${copy} aria-label="Copy ${text}">
    ${done ? "Copied" : "Copy"}</button>`;
}

/** A list of names and values; what is null or false is left out. */
export const Facts = ({ of }) => html`<dl class="facts">
  ${of
    .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "")
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;
