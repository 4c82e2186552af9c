// How the server is doing, at a glance.

import { get } from "../api.js";
import { bytes, number, rate, short, span } from "../format.js";
import { html } from "../html.js";
import { Card, Facts, Head, Note, Pending, Tile } from "../parts/bits.js";
import { Chart } from "../parts/chart.js";
import { Table } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { history, pulse } from "../pulse.js";
import { link } from "../router.js";

const RATES = [
  { label: "published", color: "--blue" },
  { label: "handed out", color: "--violet" },
  { label: "completed", color: "--green" },
  { label: "failed", color: "--red" },
];
const DEPTHS = [
  { label: "waiting", color: "--blue" },
  { label: "active", color: "--teal" },
  { label: "delayed", color: "--amber" },
  { label: "dead", color: "--red" },
];
const STATES = [
  ["Waiting", "waiting", "waiting,prioritized,paused"],
  ["Active", "active", "active"],
  ["Delayed", "delayed", "delayed"],
  ["Parents waiting", "waiting-children", "waiting-children"],
  ["Completed", "completed", "completed"],
];

export function Overview() {
  const now = pulse.value;
  if (!now) return html`<${Head} title="Overview" /><${Note}>Loading…<//>`;
  const { counts, rates } = now;
  return html`<${Head} title="Overview" />
    <div class="tiles">
      ${STATES.map(([label, name, state]) => html`<${Tile} key=${name} label=${label}
        value=${counts[name]} href=${link("jobs", "", { state })} />`)}
      <${Tile} label="Dead letters" value=${counts.failed} href=${link("dead")}
        kind=${counts.failed ? "bad" : ""} />
    </div>
    <div class="columns">
      ${rates && html`<${Card} title="Jobs a second">
        <${Chart} label="Jobs a second" series=${RATES} data=${history.value.rates} show=${rate} /><//>`}
      <${Card} title="Jobs by state">
        <${Chart} label="Jobs by state" series=${DEPTHS} data=${history.value.depths} show=${short} /><//>
    </div>
    <div class="columns">
      <${Fullest} title="Fullest queues" sort="waiting" none="Nothing waits." />
      <${Fullest} title="Most dead letters" sort="failed" none="There are no dead letters." />
    </div>
    ${rates && html`<${Server} now=${now} />`}`;
}

function Fullest({ title, sort, none }) {
  const poll = usePoll((signal) => get("queues/find", { sort, limit: 6 }, signal), [sort], 5_000);
  const of = (q) => (sort === "failed" ? q.counts.failed : waiting(q.counts));
  const rows = (poll.data?.queues ?? []).filter(of);
  const columns = [
    { label: "Queue", kind: "main", cell: (q) => html`<a href=${link("queue", q.name)} data-row>${q.name}</a>` },
    { label: sort === "failed" ? "Dead" : "Waiting", kind: "num", cell: (q) => number(of(q)) },
  ];
  return html`<${Card} title=${title} aside=${html`<a href=${link("queues", "", { sort })}>All queues</a>`}>
    <${Pending} poll=${poll} empty=${!rows.length} what=${none} />
    ${rows.length > 0 && html`<${Table} label=${title} columns=${columns} rows=${rows} of=${(q) => q.name} />`}
  <//>`;
}

const waiting = (counts) => counts.waiting + counts.prioritized + counts.paused;

const Server = ({ now }) => html`<${Card} title="Server">
  ${now.storage.error && html`<${Note} kind="bad">Nothing can be written: ${now.storage.error}<//>`}
  <${Facts} of=${[
    ["Up for", span(now.uptime * 1_000)],
    ["Memory", bytes(now.memoryBytes)],
    ["Connections", number(now.connections)],
    ["Queues", html`<a href=${link("queues")}>${number(now.queues)}</a>`],
    ["Workers", html`<a href=${link("workers")}>${number(now.workers)}</a>`],
    ["Schedules", html`<a href=${link("schedules")}>${number(now.schedules)}</a>`],
  ]} />
<//>`;
