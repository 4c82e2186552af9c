// Doing something to the server: ask, do, tell, look again.

import { html, useState } from "../html.js";
import { ask } from "./dialog.js";
import { say } from "./toast.js";

/**
 * A button for `run`, an async function that returns what to say of it. `question` is what is asked
 * first; without one, `run` asks by itself and returns nothing if the answer was no.
 */
export function Act({ label, run, question, after, danger, quiet }) {
  const [busy, setBusy] = useState(false);
  const click = async () => {
    if (question && !(await ask({ danger, yes: label, ...question }))) return;
    setBusy(true);
    try {
      const text = await run();
      if (text) {
        say(text);
        after?.();
      }
    } catch (error) {
      say(error.message, "bad");
    } finally {
      setBusy(false);
    }
  };
  const kind = `${danger ? "warn" : ""} ${quiet ? "small" : ""}`;
  return html`<button class=${kind} disabled=${busy} onClick=${click}>${label}</button>`;
}
