// One queue: what is in it, how it went lately, and what can be done to it.

import { get, path, post } from "../api.js";
import { number, short } from "../format.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Act } from "../parts/act.js";
import { Card, Chip, Facts, Head, Note, Tile } from "../parts/bits.js";
import { Chart } from "../parts/chart.js";
import { JobList, jobAge, jobAttempts, jobName, jobState, useSearch } from "../parts/jobs.js";
import { usePoll } from "../poll.js";
import { go, link } from "../router.js";
import { useRights } from "../session.js";

const STATES = [
  ["Active", "active"],
  ["Delayed", "delayed"],
  ["Parents waiting", "waiting-children"],
  ["Completed", "completed"],
];
const ENDS = [
  { label: "completed", color: "--green" },
  { label: "failed", color: "--red" },
];
const DEPTHS = [
  { label: "waiting", color: "--blue" },
  { label: "active", color: "--teal" },
  { label: "delayed", color: "--amber" },
];
const HOUR = 60; // minutes
const KEPT = 300; // looks at the depth

export function Queue({ name }) {
  const may = useRights(name);
  const poll = usePoll((signal) => look(name, signal), [name], 2_000);
  const depth = useDepth(name, poll.data?.counts);
  if (!poll.data) return html`<${Head} title=${name} /><${Note}>${poll.error?.message ?? "Loading…"}<//>`;
  const { counts, paused } = poll.data;
  return html`<${Head} title=${html`${name} ${paused && html`<${Chip} state="paused" />`}`} lead="Queue">
      <${Actions} ...${{ name, paused, counts, may }} after=${poll.reload} /><//>
    ${poll.error && html`<${Note} kind="bad">${poll.error.message}<//>`}
    <div class="tiles">
      <${Tile} label=${paused ? "Paused" : "Waiting"} value=${waiting(counts)}
        href=${link("jobs", "", { queue: name, state: "waiting,prioritized,paused" })} />
      ${STATES.map(([label, state]) => html`<${Tile} key=${state} label=${label} value=${counts[state]}
        href=${link("jobs", "", { queue: name, state })} />`)}
      <${Tile} label="Dead letters" value=${counts.failed} href=${link("dead", "", { queue: name })}
        kind=${counts.failed ? "bad" : ""} />
    </div>
    <div class="columns">
      <${Card} title="Jobs by state"><${Chart} label="Jobs by state" series=${DEPTHS} data=${depth} show=${short} /><//>
      <${Ends} name=${name} />
    </div>
    <${Newest} name=${name} />
    <${Limits} name=${name} />`;
}

const waiting = (counts) => counts.waiting + counts.prioritized + counts.paused;

async function look(name, signal) {
  const [{ counts }, { paused }] = await Promise.all([
    get(path`queues/${name}/counts`, {}, signal),
    get(path`queues/${name}/paused`, {}, signal),
  ]);
  return { counts, paused };
}

/** The depth of a queue since the page shows it. */
function useDepth(name, counts) {
  const lines = useRef([[], [], [], []]);
  const [shown, show] = useState(lines.current);
  useEffect(() => {
    lines.current = [[], [], [], []];
    show(lines.current);
  }, [name]);
  useEffect(() => {
    if (!counts) return;
    const values = [Date.now() / 1_000, waiting(counts), counts.active, counts.delayed];
    lines.current = lines.current.map((line, i) => [...line.slice(1 - KEPT), values[i]]);
    show(lines.current);
  }, [counts]);
  return shown;
}

function Ends({ name }) {
  const ask = (type, signal) => get(path`queues/${name}/metrics`, { type, end: HOUR - 1 }, signal);
  const poll = usePoll(
    (signal) => Promise.all([ask("completed", signal), ask("failed", signal)]),
    [name],
    15_000,
  );
  const data = useMemo(() => byMinute(poll.data), [poll.data]);
  return html`<${Card} title="Ends a minute">
    ${poll.error ? html`<${Note} kind="bad">${poll.error.message}<//>` : html`<${Chart}
      label="Jobs that ended, minute by minute" series=${ENDS} data=${data} show=${short} />`}<//>`;
}

/** The newest minute comes first in what the server tells, and last in a chart. */
function byMinute(told) {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const times = Array.from({ length: HOUR }, (_, i) => now - (HOUR - 1 - i) * 60);
  const line = (one) => times.map((_, i) => one?.[HOUR - 1 - i] ?? 0);
  return [times, line(told?.[0]), line(told?.[1])];
}

function Newest({ name }) {
  const search = useSearch({ queue: name }, 4_000, 10);
  return html`<${Card} title="Newest jobs" aside=${html`<a href=${link("jobs", "", { queue: name })}>Search</a>`}>
    <${JobList} search=${search} columns=${[jobName, jobState, jobAttempts, jobAge]} empty="No jobs." /><//>`;
}

function Limits({ name }) {
  const poll = usePoll((signal) => get(path`queues/${name}/limits`, {}, signal), [name]);
  const limits = poll.data?.limits;
  if (!limits?.rateLimit && !limits?.concurrencyLimit) return null;
  const { rateLimit: rate, concurrencyLimit } = limits;
  return html`<${Card} title="Limits"><${Facts} of=${[
    ["Rate", rate && `${number(rate.max)} in ${number(rate.duration)} ms`],
    ["At the same time", concurrencyLimit && number(concurrencyLimit)],
  ]} /><//>`;
}

function Actions({ name, paused, counts, may, after }) {
  return deeds(name, paused, counts)
    .filter((deed) => deed.when !== false && may(deed.right ?? "PurgeQueue"))
    .map((deed) => html`<${Act} key=${deed.label} after=${after} ...${deed} />`);
}

function deeds(name, paused, counts) {
  const at = (verb) => path`queues/${name}/` + verb;
  const waits = waiting(counts) + counts.delayed;
  return [
    {
      label: "Resume",
      when: paused,
      run: () => post(at("resume")).then(() => "Jobs are handed out again"),
      question: { title: "Resume this queue?", text: `Jobs of ${name} are handed out again.` },
    },
    {
      label: "Pause",
      when: !paused,
      run: () => post(at("pause")).then(() => "No more jobs are handed out"),
      question: {
        title: "Pause this queue?",
        text: `No more jobs of ${name} are handed out until it is resumed.`,
      },
    },
    {
      label: "Run delayed jobs",
      when: counts.delayed > 0,
      run: () => post(at("promote-jobs")).then(({ count }) => `${number(count)} jobs are ready`),
      question: {
        title: "Run all delayed jobs now?",
        text: `${number(counts.delayed)} jobs no longer wait for their moment.`,
      },
    },
    {
      label: "Forget completed",
      danger: true,
      when: counts.completed > 0,
      run: async () => {
        const body = { grace: 0, state: "completed", limit: counts.completed };
        const { count } = await post(at("clean"), body);
        return `${number(count)} jobs were forgotten`;
      },
      question: { title: "Forget completed jobs?", text: "Their results are gone for good." },
    },
    {
      label: "Drain",
      danger: true,
      when: waits > 0,
      run: () => post(at("drain")).then(({ count }) => `${number(count)} jobs were removed`),
      question: {
        title: "Drain this queue?",
        text: `${number(waits)} waiting and delayed jobs are removed and never run.`,
        word: name,
      },
    },
    {
      label: "Obliterate",
      danger: true,
      right: "DeleteQueue",
      run: () => post(at("obliterate")).then(() => (go("queues"), "The queue is gone")),
      question: {
        title: "Obliterate this queue?",
        text: "All of its jobs, active ones too, and its settings are gone for good.",
        word: name,
      },
    },
  ];
}
