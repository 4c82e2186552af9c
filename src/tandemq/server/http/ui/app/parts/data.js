// What users put into jobs: shown as text, never as anything else.

import { bytes } from "../format.js";
import { html, useState } from "../html.js";

const SHOWN = 20_000; // characters at first

export const written = (value) => JSON.stringify(value, null, 2) ?? "undefined";

/** JSON in a frame of its own; a long one is cut until somebody asks for all of it. */
export function Data({ value, name, text = written(value) }) {
  const [all, setAll] = useState(false);
  const long = text.length > SHOWN;
  const save = () => {
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    Object.assign(document.createElement("a"), { href: url, download: `${name}.json` }).click();
    URL.revokeObjectURL(url);
  };
  return html`<div class="data">
    <pre tabindex="0" aria-label=${name}>${all || !long ? text : text.slice(0, SHOWN) + "…"}</pre>
    <div class="data-tools">
      <span class="muted">${bytes(new Blob([text]).size)}</span>
      ${long && !all && html`<button class="small" onClick=${() => setAll(true)}>Show all</button>`}
      <button class="small" onClick=${save}>Download</button>
    </div>
  </div>`;
}
