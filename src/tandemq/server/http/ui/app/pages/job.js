// One job: where it is and why, what happened to it, what it carries.

import { get, path } from "../api.js";
import { bytes, moment, number, span } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { Ago, Card, Chip, Copy, Facts, Head, Note } from "../parts/bits.js";
import { Data } from "../parts/data.js";
import { Doings } from "../parts/doing.js";
import { Pager } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { link } from "../router.js";
import { useRights } from "../session.js";

const EVERY = 3_000; // ms
const AT_ONCE = 100_000; // bytes of data and result that are loaded without being asked for
const LINES = 100; // of the log

export function Job({ name: id }) {
  const poll = usePoll((signal) => look(id, signal), [id], EVERY);
  const { brief, told } = poll.data ?? {};
  const may = useRights(brief?.queue);
  if (!poll.data) return html`<${Head} title="Job" lead=${id} /><${Note}>${poll.error?.message ?? "Loading…"}<//>`;
  if (!brief) {
    return html`<${Head} title="Job" lead=${id} />
      <${Note}>${told ? told.reasons.map((r) => r.text).join(" ") : "There is no such job."}<//>`;
  }
  return html`<${Head} title=${html`${brief.name} <${Chip} state=${brief.state} />`}
      lead=${html`<span class="id">${brief.id}</span> <${Copy} text=${brief.id} />`}>
      <${Doings} job=${brief} may=${may} after=${poll.reload} /><//>
    ${poll.error && html`<${Note} kind="bad">${poll.error.message}<//>`}
    <div class="columns">
      <${Why} told=${told} />
      <${Card} title="Facts"><${About} brief=${brief} counters=${told?.counters} /><//>
    </div>
    <${Contents} brief=${brief} />
    <${Log} id=${id} />`;
}

/** What is small: a job's data is loaded on its own, since it may be large. */
async function look(id, signal) {
  const [{ jobs }, told] = await Promise.all([
    get("jobs/search", { id, limit: 1 }, signal),
    get(path`jobs/${id}/explain`, {}, signal).catch(() => null),
  ]);
  return { brief: jobs.find((job) => job.id === id), told };
}

const Why = ({ told }) => html`<${Card} title="Why it is where it is">
  ${told
    ? html`<ol class="reasons">${told.reasons.map((reason) => html`<li class=${reason.blocks ? "blocks" : ""}>
        <p>${reason.text}</p><code>${reason.code}</code>
        ${reason.jobs?.length > 0 && html`<p class="kin">${reason.jobs.slice(0, 20).map((job) => html`
          <a href=${link("job", job.id)}>${job.id}</a> <${Chip} state=${job.state} />`)}</p>`}
      </li>`)}</ol>`
    : html`<${Note}>Nothing is known.<//>`}
<//>`;

const About = ({ brief: b, counters }) => html`<${Facts} of=${[
  ["Queue", html`<a href=${link("queue", b.queue)}>${b.queue}</a>`],
  ["Dead letter of", b.deadFrom && html`<a href=${link("queue", b.deadFrom)}>${b.deadFrom}</a>`],
  ["Id of its publisher", b.messageId],
  ["Published", html`<${Ago} at=${b.createdAt} />`],
  ["Due", b.runAt > b.createdAt && html`<${Ago} at=${b.runAt} />`],
  ["Last start", b.startedAt && html`<${Ago} at=${b.startedAt} />`],
  ["End", b.finishedAt && html`<${Ago} at=${b.finishedAt} />`],
  ["Ran for", b.startedAt && b.finishedAt && span(b.finishedAt - b.startedAt)],
  ["Failures", `${b.attempts} of ${b.maxAttempts}`],
  ["Lost with a connection", counters?.interruptions?.count || null],
  ["Stalled", counters?.stalls?.count || null],
  ["Priority", number(b.priority)],
  ["Progress", b.progress ? `${b.progress} %` : null],
  ["Cause", b.cause?.replaceAll("_", " ")],
  ["Group", b.groupId],
  ["Tags", b.tags.length ? b.tags.map((tag) => html`<a class="tag" href=${link("jobs", "", { tag })}>${tag}</a>`) : null],
  ["Data", bytes(b.dataBytes)],
  ["Result", b.resultBytes ? bytes(b.resultBytes) : null],
]} />`;

function Contents({ brief }) {
  const size = brief.dataBytes + brief.resultBytes;
  const [wanted, setWanted] = useState(size <= AT_ONCE);
  const changes = [brief.state, brief.attempts, brief.startedAt, brief.progress, brief.dataBytes];
  useEffect(() => setWanted(size <= AT_ONCE), [brief.id]);
  const load = (signal) => (wanted ? get(path`jobs/${brief.id}`, {}, signal) : Promise.resolve({}));
  const poll = usePoll(load, [brief.id, wanted, ...changes]);
  const job = poll.data?.job;
  if (!wanted) {
    return html`<${Card} title="Data and timeline"><p class="muted">They take ${bytes(size)}.</p>
      <button onClick=${() => setWanted(true)}>Load them</button><//>`;
  }
  if (!job) return html`<${Card} title="Data"><${Note}>${poll.error?.message ?? "Loading…"}<//><//>`;
  return html`<div class="columns">
      <${Card} title="Timeline"><${Timeline} steps=${job.timeline} /><//>
      <div class="stack">
        ${job.failedReason && html`<${Card} title="Last error">
          <pre tabindex="0" class="error">${[job.failedReason, ...(job.stacktrace ?? [])].join("\n")}</pre><//>`}
        <${Card} title="Data"><${Data} name="data" value=${job.data} /><//>
        ${job.returnvalue !== undefined && html`<${Card} title="Result"><${Data} name="result" value=${job.returnvalue} /><//>`}
      </div>
    </div>`;
}

const Timeline = ({ steps }) => html`<ol class="timeline">
  ${steps.map((step, i) => html`<li class="step-${step.state}">
    <b>${step.state}</b>${step.attempt ? ` after failure ${step.attempt}` : ""}
    <span class="muted">${moment(step.timestamp)}${i ? `, ${span(step.timestamp - steps[i - 1].timestamp)} later` : ""}</span>
    ${step.error && html`<p>${step.error}</p>`}
  </li>`)}
</ol>`;

function Log({ id }) {
  const [offset, setOffset] = useState(0);
  const query = { start: offset, end: offset + LINES - 1 };
  const poll = usePoll((signal) => get(path`jobs/${id}/logs`, query, signal), [id, offset], EVERY);
  const { logs = [], count = 0 } = poll.data ?? {};
  return html`<${Card} title="Log" aside=${count ? `${number(count)} lines` : ""}>
    ${poll.error && html`<${Note} kind="bad">${poll.error.message}<//>`}
    ${logs.length
      ? html`<ol class="log">${logs.map((line) => html`<li class="level-${line.level}">
          <time>${moment(line.timestamp)}</time> <b>${line.level}</b> <span>${line.message}</span></li>`)}</ol>`
      : html`<${Note}>The job has written nothing.<//>`}
    <${Pager} offset=${offset} limit=${LINES} shown=${logs.length} total=${count} to=${setOffset} />
  <//>`;
}
