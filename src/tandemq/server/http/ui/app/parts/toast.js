// Short words about what was done.

import { html, signal } from "../html.js";

const STAYS = 5_000; // ms
const said = signal([]);
let count = 0;

export function say(text, kind = "good") {
  const one = { id: ++count, text, kind };
  said.value = [...said.value.slice(-3), one];
  setTimeout(() => (said.value = said.value.filter((other) => other !== one)), STAYS);
}

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${said.value.map((one) => html`<p key=${one.id} class="toast ${one.kind}">${one.text}</p>`)}
</div>`;
