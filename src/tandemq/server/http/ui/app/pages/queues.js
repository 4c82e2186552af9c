// All queues, a page at a time.

import { get } from "../api.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { Chip, Head, Pending } from "../parts/bits.js";
import { Filters } from "../parts/filters.js";
import { Pager, Table } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { go, link, place } from "../router.js";

const LIMIT = 50;
const SORTS = [
  ["", "by name"],
  ["waiting", "most waiting first"],
  ["active", "most active first"],
  ["delayed", "most delayed first"],
  ["completed", "most completed first"],
  ["failed", "most dead letters first"],
];
const FIELDS = [
  { name: "text", label: "Name contains", type: "search" },
  { name: "sort", label: "Order", options: SORTS },
];

const count = (label, of) => ({ label, kind: "num", cell: (q) => number(of(q.counts)) });
const COLUMNS = [
  {
    label: "Queue",
    kind: "main",
    cell: (q) => html`<a href=${link("queue", q.name)} data-row>${q.name}</a>
      ${q.paused && html` <${Chip} state="paused" />`}`,
  },
  count("Waiting", (c) => c.waiting + c.prioritized + c.paused),
  count("Active", (c) => c.active),
  count("Delayed", (c) => c.delayed),
  count("Completed", (c) => c.completed),
  count("Dead", (c) => c.failed),
  { label: "Consumers", kind: "num", cell: (q) => number(q.pulls + q.subscribers) },
];

export function Queues() {
  const { text, sort, offset: from } = place.value.query;
  const offset = Number(from) || 0;
  const poll = usePoll(
    (signal) => get("queues/find", { text, sort, offset, limit: LIMIT }, signal),
    [text, sort, offset],
    5_000,
  );
  const rows = poll.data?.queues ?? [];
  return html`<${Head} title="Queues" lead=${poll.data && `${number(poll.data.total)} in all`} />
    <${Filters} fields=${FIELDS} values=${{ text, sort }} onChange=${(query) => go("queues", "", query)} />
    <section class="card">
      <${Pending} poll=${poll} empty=${!rows.length} what="No queue fits." />
      ${rows.length > 0 && html`<${Table} label="Queues" columns=${COLUMNS} rows=${rows} of=${(q) => q.name} />`}
      ${poll.data && html`<${Pager} offset=${offset} limit=${LIMIT} shown=${rows.length}
        total=${poll.data.total} to=${(offset) => go("queues", "", { text, sort, offset })} />`}
    </section>`;
}
