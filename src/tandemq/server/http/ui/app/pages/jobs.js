// Jobs of all queues, by whatever is known of them.

import { html } from "../html.js";
import { Head, Note } from "../parts/bits.js";
import { Filters } from "../parts/filters.js";
import {
  JobList, jobAge, jobAttempts, jobError, jobName, jobQueue, jobState, useSearch,
} from "../parts/jobs.js";
import { go, place } from "../router.js";

const STATES = [
  ["", "any"],
  ["waiting,prioritized,paused", "waiting, in any way"],
  ["waiting", "waiting"],
  ["prioritized", "prioritized"],
  ["paused", "paused"],
  ["active", "active"],
  ["delayed", "delayed"],
  ["waiting-children", "waiting for children"],
  ["completed", "completed"],
  ["failed", "failed"],
];
const FIELDS = [
  { name: "text", label: "Text in data or error", type: "search" },
  { name: "queue", label: "Queue" },
  { name: "state", label: "State", options: STATES },
  { name: "name", label: "Job name (* for any)" },
  { name: "id", label: "Id begins with" },
  { name: "tag", label: "Tag" },
  { name: "after", label: "Published after", type: "datetime-local" },
  { name: "before", label: "Published before", type: "datetime-local" },
];
const COLUMNS = [jobName, jobQueue, jobState, jobAttempts, jobError, jobAge];

export function Jobs() {
  const query = place.value.query;
  const search = useSearch({ ...query, after: ms(query.after), before: ms(query.before) }, 4_000);
  return html`<${Head} title="Jobs" lead="The newest first" />
    <${Filters} fields=${FIELDS} values=${query} onChange=${(values) => go("jobs", "", values)} />
    <section class="card">
      ${search.busy && search.data && html`<${Note}>Searching…<//>`}
      <${JobList} search=${search} columns=${COLUMNS} empty="No job fits." />
    </section>`;
}

const ms = (local) => (local ? new Date(local).getTime() || undefined : undefined);
