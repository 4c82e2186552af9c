// Dead letters: jobs that failed for good, and what can be done about it.

import { get, path, post } from "../api.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { Act } from "../parts/act.js";
import { Ago, Card, Facts, Head } from "../parts/bits.js";
import { Doings } from "../parts/doing.js";
import { Filters } from "../parts/filters.js";
import { JobList, jobError, jobName, jobQueue, useSearch } from "../parts/jobs.js";
import { usePoll } from "../poll.js";
import { go, place } from "../router.js";
import { mayAnywhere, useRights } from "../session.js";

const LEAD = "Jobs that failed for good. Messages of brokers' queues move to a queue named .dlq instead.";
const FIELDS = [
  { name: "queue", label: "Queue" },
  { name: "text", label: "Text in data or error", type: "search" },
  { name: "name", label: "Job name (* for any)" },
];

export function Dead() {
  const { queue, text, name } = place.value.query;
  const search = useSearch({ queue, text, name, state: "failed" }, 5_000);
  const tools = {
    label: "",
    kind: "tools",
    cell: (job) => html`<${RowDoings} job=${job} after=${search.reload} />`,
  };
  const columns = [
    jobName,
    jobQueue,
    { label: "Cause", kind: "name", cell: (job) => (job.cause ?? "").replaceAll("_", " ") },
    jobError,
    { label: "Died", kind: "when", cell: (job) => html`<${Ago} at=${job.finishedAt} />` },
    ...(mayAnywhere("PurgeQueue") ? [tools] : []),
  ];
  return html`<${Head} title="Dead letters" lead=${LEAD}>
      ${queue && html`<${Whole} queue=${queue} after=${search.reload} />`}<//>
    <${Filters} fields=${FIELDS} values=${{ queue, text, name }} onChange=${(query) => go("dead", "", query)} />
    ${queue && html`<${Causes} queue=${queue} />`}
    <section class="card"><${JobList} search=${search} columns=${columns} empty="There are no dead letters." /></section>`;
}

/** A superuser's rights are the same everywhere; those of others are asked for by queue. */
function RowDoings({ job, after }) {
  const may = useRights(job.deadFrom ?? job.queue);
  return html`<${Doings} job=${job} may=${may} after=${after} quiet />`;
}

function Whole({ queue, after }) {
  const may = useRights(queue);
  if (!may("PurgeQueue")) return null;
  const at = (verb) => path`queues/${queue}/dlq/` + verb;
  return html`<${Act} label="Retry all" after=${after}
      run=${() => post(at("retry")).then(({ count }) => `${number(count)} jobs run again`)}
      question=${{ title: "Retry all dead letters?", text: `Every dead letter of ${queue} runs again.` }} />
    <${Act} label="Purge all" danger after=${after}
      run=${() => post(at("purge")).then(({ count }) => `${number(count)} dead letters were removed`)}
      question=${{
        title: "Purge all dead letters?",
        text: `Every dead letter of ${queue} is gone for good.`,
        word: queue,
      }} />`;
}

function Causes({ queue }) {
  const poll = usePoll((signal) => get(path`queues/${queue}/dlq/stats`, {}, signal), [queue], 5_000);
  const stats = poll.data?.stats;
  if (!stats?.total) return null;
  const causes = Object.entries(stats.byReason).filter(([, n]) => n);
  return html`<${Card} title="Causes"><${Facts} of=${[
    ["In all", number(stats.total)],
    ...causes.map(([cause, n]) => [cause.replaceAll("_", " "), number(n)]),
    ["Retried by themselves", stats.pendingRetry ? number(stats.pendingRetry) : null],
  ]} /><//>`;
}
