// The server's pulse, felt every other second while the page is looked at, and what it was lately.

import { get } from "./api.js";
import { effect, signal } from "./html.js";
import { signedIn } from "./session.js";

const EVERY = 2_000; // ms
const KEPT = 300; // beats: ten minutes

const RATES = ["pushPerSec", "pullPerSec", "completePerSec", "failPerSec"];
const DEPTHS = ["waiting", "active", "delayed", "failed"];

export const pulse = signal(null); // as Pulse tells it
export const history = signal({ rates: [[], [], [], [], []], depths: [[], [], [], [], []] });

let timer;

effect(() => {
  clearTimeout(timer);
  if (signedIn.value) beat();
  else {
    pulse.value = null;
    history.value = { rates: [[], [], [], [], []], depths: [[], [], [], [], []] };
  }
});

async function beat() {
  clearTimeout(timer);
  try {
    if (!document.hidden) remember((pulse.value = await get("pulse")));
  } catch {
    // What is wrong is said where it matters; the next beat will tell when it is over.
  }
  if (signedIn.peek()) timer = setTimeout(beat, EVERY);
}

function remember({ timestamp, rates = {}, counts }) {
  const { rates: r, depths: d } = history.value;
  history.value = {
    rates: grown(r, [timestamp / 1_000, ...RATES.map((name) => rates[name] ?? 0)]),
    depths: grown(d, [timestamp / 1_000, ...DEPTHS.map((name) => counts[name])]),
  };
}

const grown = (lines, values) => lines.map((line, i) => [...line.slice(1 - KEPT), values[i]]);
