// A row of fields that narrow a list. They live in the address, so that a link shows the same.

import { html, useEffect, useRef, useState } from "../html.js";

const WAIT = 350; // ms after the last key

/** `fields` are {name, label, type} or {name, label, options}; `onChange` gets all values. */
export function Filters({ fields, values, onChange }) {
  const [typed, setTyped] = useState({});
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const now = { ...values, ...typed };
  const take = (name, value, wait) => {
    const all = { ...now, [name]: value };
    setTyped({ ...typed, [name]: value });
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setTyped({});
      onChange(all);
    }, wait);
  };
  const one = ({ name, label, type = "text", options }) => html`<label key=${name}>
    <span>${label}</span>
    ${options
      ? html`<select value=${now[name] ?? ""} onChange=${(e) => take(name, e.target.value, 0)}>
          ${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
        </select>`
      : html`<input type=${type} value=${now[name] ?? ""} maxlength="256" autocomplete="off"
          step=${type === "datetime-local" ? "1" : undefined}
          spellcheck="false" onInput=${(e) => take(name, e.target.value, WAIT)} />`}
  </label>`;
  return html`<form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>${fields.map(one)}</form>`;
}
