// The page: a frame with the way around, and in it the page that the address names.

import { away, signOut } from "./api.js";
import { short } from "./format.js";
import { html, render, useEffect } from "./html.js";
import { listen, PLACES } from "./keys.js";
import { Dead } from "./pages/dead.js";
import { Job } from "./pages/job.js";
import { Jobs } from "./pages/jobs.js";
import { Login } from "./pages/login.js";
import { Overview } from "./pages/overview.js";
import { Queue } from "./pages/queue.js";
import { Queues } from "./pages/queues.js";
import { Schedules } from "./pages/schedules.js";
import { Subscribers } from "./pages/subscribers.js";
import { Workers } from "./pages/workers.js";
import { Head, Note } from "./parts/bits.js";
import { Dialog } from "./parts/dialog.js";
import { Toasts } from "./parts/toast.js";
import { pulse } from "./pulse.js";
import { place } from "./router.js";
import { me, signedIn } from "./session.js";
import { nextTheme, theme } from "./theme.js";

const PAGES = {
  overview: Overview,
  queues: Queues,
  queue: Queue,
  jobs: Jobs,
  job: Job,
  dead: Dead,
  schedules: Schedules,
  workers: Workers,
  subscribers: Subscribers,
};
const WITHIN = { queue: "queues", job: "jobs" }; // what is marked in the way around

function App() {
  if (signedIn.value === false) return html`<${Login} />`;
  const { page, name } = place.value;
  const Page = PAGES[page] ?? Nowhere;
  return html`<a class="skip" href="#main" onClick=${skip}>To the content</a>
    <${Side} page=${WITHIN[page] ?? page} />
    <main id="main" tabindex="-1">
      ${away.value && html`<p class="banner" role="alert">The server does not answer. What you see may be old.</p>`}
      ${signedIn.value ? html`<${Page} key=${page + name} name=${name} />` : html`<${Note}>Loading…<//>`}
    </main>
    <${Dialog} /><${Toasts} />`;
}

function skip(event) {
  event.preventDefault(); // the address says which page this is
  document.getElementById("main").focus();
}

const Nowhere = () => html`<${Head} title="There is no such page" />`;

function Side({ page }) {
  useEffect(() => {
    const here = document.querySelector(".side [aria-current]"); // in a row that scrolls, if narrow
    here?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [page]);
  const dead = pulse.value?.counts.failed;
  return html`<header class="side">
    <a class="brand" href="#/"><img src="icon.svg" alt="" width="26" height="26" /> tandemq</a>
    <nav aria-label="Pages">${Object.values(PLACES).map(([name, label]) => html`
      <a href="#/${name}" aria-current=${name === page ? "page" : undefined}>${label}
        ${name === "dead" && dead > 0 && html`<span class="badge">${short(dead)}</span>`}</a>`)}
    </nav>
    <div class="foot">
      <button class="quiet" onClick=${nextTheme} title="Light, dark or as the system has it">Theme: ${theme}</button>
      ${me.value && !me.value.open && html`<span class="who">${me.value.user ?? "superuser"}
        <button class="quiet" onClick=${signOut}>Sign out</button></span>`}
    </div>
  </header>`;
}

const root = document.getElementById("app");
root.replaceChildren(); // what stood there until now
listen();
render(html`<${App} />`, root);
