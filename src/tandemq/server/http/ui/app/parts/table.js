// Lists: one page of rows at a time, cards where the window is narrow.

import { number } from "../format.js";
import { html } from "../html.js";

/**
 * `columns` are {label, cell(row), kind}; a kind is a class: "num", "main", "wide", "tools".
 * The link in the "main" cell is what the keys j and k go through.
 */
export const Table = ({ columns, rows, of, label }) => html`<div class="table-box">
  <table aria-label=${label}>
    <thead>
      <tr>${columns.map((c) => html`<th scope="col" class=${c.kind}>${c.label}</th>`)}</tr>
    </thead>
    <tbody>
      ${rows.map((row) => html`<tr key=${of(row)}>
        ${columns.map((c) => html`<td class=${c.kind} data-label=${c.label}>${c.cell(row)}</td>`)}
      </tr>`)}
    </tbody>
  </table>
</div>`;

/** Pages of a list whose length is known, or of which one row more was asked for (`more`). */
export function Pager({ offset, limit, shown, total, more, to }) {
  const last = total === undefined ? !more : offset + limit >= total;
  if (!offset && last) return null;
  const where = shown ? `${number(offset + 1)}–${number(offset + shown)}` : "none";
  return html`<nav class="pager" aria-label="Pages">
    <button disabled=${!offset} onClick=${() => to(Math.max(0, offset - limit))}>Previous</button>
    <span>${where}${total === undefined ? "" : ` of ${number(total)}`}</span>
    <button disabled=${last} onClick=${() => to(offset + limit)}>Next</button>
  </nav>`;
}
