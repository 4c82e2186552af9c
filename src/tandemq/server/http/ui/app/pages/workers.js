// Who says that it works.

import { get } from "../api.js";
import { cut, number, span } from "../format.js";
import { html } from "../html.js";
import { Ago, Chip, Head, Pending, Tile } from "../parts/bits.js";
import { Pager, Table } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { go, place } from "../router.js";

const LIMIT = 100;
const text = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

const COLUMNS = [
  {
    label: "Worker",
    kind: "main",
    cell: (w) => html`<span tabindex="-1" data-row>${text(w.name)}</span> <span class="id">${w.id}</span>`,
  },
  { label: "Status", cell: (w) => html`<${Chip} state=${w.status} />` },
  { label: "Host", kind: "name", cell: (w) => `${w.hostname} · ${w.pid}` },
  { label: "Queues", kind: "wide", cell: (w) => cut([w.queues].flat().map(text).join(", "), 120) },
  { label: "Active", kind: "num", cell: (w) => `${number(w.activeJobs)} of ${number(w.concurrency)}` },
  { label: "Done", kind: "num", cell: (w) => number(w.processedJobs) },
  { label: "Failed", kind: "num", cell: (w) => number(w.failedJobs) },
  { label: "Heard of", kind: "when", cell: (w) => html`<${Ago} at=${w.lastSeen} />` },
  { label: "Up for", kind: "when", cell: (w) => span(w.uptime) },
];

export function Workers() {
  const offset = Number(place.value.query.offset) || 0;
  const poll = usePoll((signal) => get("workers", { offset, limit: LIMIT }, signal), [offset], 5_000);
  const { workers = [], stats } = poll.data ?? {};
  return html`<${Head} title="Workers" />
    ${stats && html`<div class="tiles">
      <${Tile} label="Registered" value=${stats.total} />
      <${Tile} label="Active" value=${stats.active} />
      <${Tile} label="Jobs in work" value=${stats.activeJobs} />
      <${Tile} label="Room for jobs" value=${stats.concurrencySlots} />
      <${Tile} label="Done" value=${stats.totalProcessed} />
      <${Tile} label="Failed" value=${stats.totalFailed} />
    </div>`}
    <section class="card">
      <${Pending} poll=${poll} empty=${!workers.length} what="No worker has registered." />
      ${workers.length > 0 && html`<${Table} label="Workers" columns=${COLUMNS} rows=${workers} of=${(w) => w.id} />`}
      ${stats && html`<${Pager} offset=${offset} limit=${LIMIT} shown=${workers.length} total=${stats.total}
        to=${(offset) => go("workers", "", { offset })} />`}
    </section>`;
}
