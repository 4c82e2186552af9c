// Jobs in a list, as Search returns them.

import { get } from "../api.js";
import { cut, number } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { usePoll } from "../poll.js";
import { link } from "../router.js";
import { Ago, Chip, Pending } from "./bits.js";
import { Table } from "./table.js";

export const PAGE = 50;
const DEAR = 5_000; // jobs: a search that has to look at more is not repeated by itself

/**
 * A page of a search, and the cursors of the pages before it. `every` is how often (ms) the first
 * page is looked at again; later ones stay as they are.
 */
export function useSearch(filters, every = 0, limit = PAGE) {
  const key = JSON.stringify(filters);
  const [cursors, setCursors] = useState([null]);
  useEffect(() => setCursors([null]), [key]);
  const cursor = cursors.at(-1);
  const poll = usePoll(
    (signal) => get("jobs/search", { ...filters, limit, cursor }, signal),
    [key, cursor, limit],
    cursor ? 0 : every,
    ({ looked }) => looked > DEAR,
  );
  const next = poll.data?.cursor;
  return {
    ...poll,
    page: cursors.length,
    onNext: next && (() => setCursors([...cursors, next])),
    onPrevious: cursors.length > 1 && (() => setCursors(cursors.slice(0, -1))),
  };
}

export const jobName = {
  label: "Job",
  kind: "main",
  cell: (job) => html`<a href=${link("job", job.id)} data-row>${job.name}</a>
    <span class="id">${job.messageId ?? job.id}</span>`,
};
export const jobQueue = {
  label: "Queue",
  kind: "name",
  cell: (job) => html`<a href=${link("queue", job.queue)}>${job.queue}</a>`,
};
export const jobState = { label: "State", cell: (job) => html`<${Chip} state=${job.state} />` };
export const jobAge = {
  label: "Published",
  kind: "when",
  cell: (job) => html`<${Ago} at=${job.createdAt} />`,
};
export const jobAttempts = {
  label: "Failures",
  kind: "num",
  cell: (job) => `${job.attempts} of ${job.maxAttempts}`,
};
export const jobError = {
  label: "Last error",
  kind: "wide",
  cell: (job) => (job.failedReason ? cut(job.failedReason, 120) : ""),
};

export function JobList({ search, columns, empty }) {
  const jobs = search.data?.jobs ?? [];
  return html`<${Pending} poll=${search} empty=${!jobs.length} what=${empty} />
    ${jobs.length > 0 && html`<${Table} label="Jobs" columns=${columns} rows=${jobs} of=${(j) => j.id} />`}
    ${search.data && html`<nav class="pager" aria-label="Pages">
      <button disabled=${!search.onPrevious} onClick=${search.onPrevious}>Previous</button>
      <span>page ${search.page}, ${number(search.data.looked)} looked at</span>
      <button disabled=${!search.onNext} onClick=${search.onNext}>Next</button>
    </nav>`}`;
}
