// What comes again by the clock.

import { get, path, remove } from "../api.js";
import { ago, moment, number, span } from "../format.js";
import { html } from "../html.js";
import { Act } from "../parts/act.js";
import { Head, Pending } from "../parts/bits.js";
import { Filters } from "../parts/filters.js";
import { Pager, Table } from "../parts/table.js";
import { usePoll } from "../poll.js";
import { go, link, place } from "../router.js";
import { mayAnywhere, useRights } from "../session.js";

const LIMIT = 50;
const FIELDS = [{ name: "queue", label: "Queue" }];

export function Schedules() {
  const { queue, offset: from } = place.value.query;
  const offset = Number(from) || 0;
  const poll = usePoll(
    (signal) => get("crons", { queue, offset, limit: LIMIT + 1 }, signal), [queue, offset], 5_000,
  );
  const found = poll.data?.crons ?? [];
  const rows = found.slice(0, LIMIT);
  const tools = { label: "", kind: "tools", cell: (s) => html`<${Remove} schedule=${s} after=${poll.reload} />` };
  const columns = mayAnywhere("PurgeQueue") ? [...COLUMNS, tools] : COLUMNS;
  return html`<${Head} title="Schedules" />
    <${Filters} fields=${FIELDS} values=${{ queue }} onChange=${(query) => go("schedules", "", query)} />
    <section class="card">
      <${Pending} poll=${poll} empty=${!rows.length} what="There are no schedules." />
      ${rows.length > 0 && html`<${Table} label="Schedules" columns=${columns} rows=${rows} of=${(s) => s.name} />`}
      <${Pager} offset=${offset} limit=${LIMIT} shown=${rows.length} more=${found.length > LIMIT}
        to=${(offset) => go("schedules", "", { queue, offset })} />
    </section>`;
}

const COLUMNS = [
  {
    label: "Schedule",
    kind: "main",
    cell: (s) => html`<span tabindex="-1" data-row>${s.name}</span>
      ${![s.name, "default", null].includes(s.jobName) && html`<span class="id">${s.jobName}</span>`}`,
  },
  { label: "Queue", kind: "name", cell: (s) => html`<a href=${link("queue", s.queue)}>${s.queue}</a>` },
  {
    label: "When",
    kind: "name",
    cell: (s) => html`${s.schedule ? html`<code>${s.schedule}</code>` : `every ${span(s.repeatEvery)}`}
      ${s.timezone && html`<span class="id">${s.timezone}</span>`}`,
  },
  {
    label: "Next run",
    kind: "when",
    cell: (s) => html`${ago(s.nextRun)} <span class="id">${moment(s.nextRun)}</span>
      ${s.timezone && html`<span class="id">${moment(s.nextRun, s.timezone)} there</span>`}`,
  },
  {
    label: "Runs",
    kind: "num",
    cell: (s) => (s.maxLimit ? `${number(s.executions)} of ${number(s.maxLimit)}` : number(s.executions)),
  },
];

function Remove({ schedule, after }) {
  const may = useRights(schedule.queue);
  if (!may("PurgeQueue")) return null;
  return html`<${Act} label="Remove" danger quiet after=${after}
    run=${() => remove(path`crons/${schedule.name}`).then(() => "The schedule was removed")}
    question=${{ title: "Remove this schedule?", text: `${schedule.name} never comes again. Jobs that it made stay.` }} />`;
}
