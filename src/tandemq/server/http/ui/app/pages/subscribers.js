// Who is subscribed, and how much of it is unanswered.

import { get } from "../api.js";
import { bytes, number } from "../format.js";
import { html } from "../html.js";
import { Chip, Head, Pending } from "../parts/bits.js";
import { Filters } from "../parts/filters.js";
import { Pager, Table } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { go, link, place } from "../router.js";

const LIMIT = 50;
const FIELDS = [{ name: "queue", label: "Queue" }];
const COLUMNS = [
  {
    label: "Queue",
    kind: "main",
    cell: (s) => html`<a href=${link("queue", s.queue)} data-row>${s.queue}</a>`,
  },
  { label: "Subscriber", kind: "name", cell: (s) => html`${s.name} <span class="id">connection ${s.connection}</span>` },
  { label: "Mode", kind: "name", cell: (s) => (s.mode ?? "").replaceAll("-", " ") },
  { label: "Unanswered", kind: "num", cell: (s) => `${number(s.held)} of ${number(s.window)}` },
  { label: "Bytes", kind: "num", cell: (s) => bytes(s.heldBytes) },
  { label: "State", cell: (s) => html`<${Chip} state=${s.stalled ? "stalled" : "reading"} />` },
];

export function Subscribers() {
  const { queue, offset: from } = place.value.query;
  const offset = Number(from) || 0;
  const poll = usePoll(
    (signal) => get("subscribers", { queue, offset, limit: LIMIT }, signal), [queue, offset], 3_000,
  );
  const rows = poll.data?.subscribers ?? [];
  return html`<${Head} title="Subscribers" lead=${poll.data && `${number(poll.data.total)} in all`} />
    <${Filters} fields=${FIELDS} values=${{ queue }} onChange=${(query) => go("subscribers", "", query)} />
    <section class="card">
      <${Pending} poll=${poll} empty=${!rows.length} what="Nobody is subscribed." />
      ${rows.length > 0 && html`<${Table} label="Subscribers" columns=${COLUMNS} rows=${rows}
        of=${(s) => `${s.connection} ${s.queue}`} />`}
      ${poll.data && html`<${Pager} offset=${offset} limit=${LIMIT} shown=${rows.length} total=${poll.data.total}
        to=${(offset) => go("subscribers", "", { queue, offset })} />`}
    </section>`;
}
