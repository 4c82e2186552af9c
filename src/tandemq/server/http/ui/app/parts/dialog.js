// Asking before something is done. Nothing that changes the server happens without a yes.

import { html, signal, useEffect, useState } from "../html.js";

const open = signal(null);
const box = { current: null }; // its element

/** Ask for a yes; with `word`, the user has to type it. Resolves to true or false. */
export const ask = (question) => shown({ ...question, kind: "ask" });

/** Let JSON be edited. Resolves to its value in an object, or null. */
export const edit = (question) => shown({ ...question, kind: "edit" });

/** Show something to read. */
export const tell = (question) => shown({ ...question, kind: "tell" });

function shown(question) {
  open.value?.settle(null);
  return new Promise((resolve) => {
    const settle = (value) => {
      box.current?.close(); // gives the focus back to where it was
      open.value = null;
      resolve(value);
    };
    open.value = { ...question, settle };
  });
}

export function Dialog() {
  const asked = open.value;
  useEffect(() => {
    if (asked && !box.current.open) box.current.showModal();
  }, [asked]);
  if (!asked) return null;
  const cancel = (event) => {
    event.preventDefault();
    asked.settle(null);
  };
  return html`<dialog ref=${box} class=${asked.kind} onCancel=${cancel} aria-labelledby="dialog-title">
    <h2 id="dialog-title">${asked.title}</h2>
    <${asked.kind === "ask" ? Ask : asked.kind === "edit" ? Edit : Tell} ...${asked} />
  </dialog>`;
}

function Ask({ text, yes, danger, word, settle }) {
  const [typed, setTyped] = useState("");
  return html`<form method="dialog" onSubmit=${(event) => {
      event.preventDefault();
      if (!word || typed === word) settle(true);
    }}>
    <p>${text}</p>
    ${word && html`<label>Type <b>${word}</b> to go on
      <input value=${typed} onInput=${(e) => setTyped(e.target.value)} autocomplete="off" /></label>`}
    <${Buttons} yes=${yes} danger=${danger} disabled=${word && typed !== word} settle=${settle} />
  </form>`;
}

function Edit({ text, value, yes, settle }) {
  const [typed, setTyped] = useState(value);
  let fault = "";
  try {
    JSON.parse(typed);
  } catch (error) {
    fault = error.message;
  }
  const submit = (event) => {
    event.preventDefault();
    if (!fault) settle({ value: parsed(typed) });
  };
  return html`<form method="dialog" onSubmit=${submit}>
    <p>${text}</p>
    <textarea class="code" rows="14" spellcheck="false" aria-label="Data as JSON" value=${typed}
      onInput=${(e) => setTyped(e.target.value)}></textarea>
    <p class="fault" role="status">${fault}</p>
    <${Buttons} yes=${yes} disabled=${Boolean(fault)} settle=${settle} />
  </form>`;
}

const Tell = ({ body, settle }) => html`<form method="dialog" onSubmit=${(event) => {
    event.preventDefault();
    settle(true);
  }}>${body}<div class="buttons"><button class="primary" autofocus>Close</button></div></form>`;

const Buttons = ({ yes, danger, disabled, settle }) => html`<div class="buttons">
  <button type="button" onClick=${() => settle(null)}>Cancel</button>
  <button class=${danger ? "danger" : "primary"} disabled=${disabled}>${yes}</button>
</div>`;

/** A number that no double holds goes back with all its digits, where the browser can do that. */
function parsed(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value,
  );
}
