// What can be done to a job, wherever one is shown.

import { get, path, post, put, remove } from "../api.js";
import { html } from "../html.js";
import { go } from "../router.js";
import { Act } from "./act.js";
import { written } from "./data.js";
import { edit } from "./dialog.js";

const LARGEST = 1 << 20; // bytes of data that are edited in a dialog

const isDead = (job) => job.state === "failed" || Boolean(job.deadFrom);
const grave = (job) => job.deadFrom ?? job.queue;

/** The buttons for a job, as far as `may` allows them. */
export function Doings({ job, may, after, quiet }) {
  if (!may("PurgeQueue")) return null;
  const shared = { after, quiet };
  const dead = isDead(job);
  return html`
    ${dead && html`<${Act} label="Retry" ...${shared} run=${() => retry(job)}
      question=${{ title: "Retry this job?", text: `${job.name} runs again in ${grave(job)}.` }} />`}
    ${dead && job.dataBytes <= LARGEST && html`<${Act} label="Edit and retry" ...${shared}
      run=${() => editAndRetry(job)} />`}
    ${!quiet && job.state === "delayed" && html`<${Act} label="Run now" ...${shared}
      run=${() => post(path`jobs/${job.id}/promote`).then(() => "The job is ready")}
      question=${{ title: "Run this job now?", text: "It no longer waits for its moment." }} />`}
    ${!quiet && ["waiting", "delayed", "prioritized"].includes(job.state) && !job.deadFrom && html`
      <${Act} label="Change priority" ...${shared} run=${() => prioritise(job)} />
      <${Act} label="Cancel job" danger ...${shared} run=${() => cancel(job)}
        question=${{ title: "Cancel this job?", text: "It is removed and never runs." }} />`}
    ${!quiet && dead && html`<${Act} label="Remove" danger run=${() => forget(job)}
      question=${{ title: "Remove this dead letter?", text: "It is gone for good." }} />`}`;
}

async function retry(job) {
  const { count } = await post(path`queues/${grave(job)}/dlq/retry`, { jobId: job.id });
  if (!count) throw new Error("The job could not be retried: its explanation says why");
  return "The job runs again";
}

async function editAndRetry(job) {
  const { job: whole } = await get(path`jobs/${job.id}`);
  const changed = await edit({
    title: "Edit and retry",
    text: "A copy with this data runs; the dead letter stays where it is.",
    value: written(whole.data),
    yes: "Run the copy",
  });
  if (!changed) return null;
  const told = await post(path`queues/${grave(job)}/dlq/retry`, {
    jobId: job.id,
    data: changed.value,
  });
  if (told.id) go("job", told.id);
  return "A copy with the new data runs";
}

async function prioritise(job) {
  const changed = await edit({
    title: "Change priority",
    text: "A whole number; the job with the highest goes first.",
    value: String(job.priority),
    yes: "Change",
  });
  if (!changed) return null;
  await put(path`jobs/${job.id}/priority`, { priority: changed.value });
  return "The priority was changed";
}

const cancel = (job) => remove(path`jobs/${job.id}`).then(() => "The job was cancelled");
const forget = (job) =>
  remove(path`queues/${grave(job)}/dlq/${job.id}`).then(() => "The dead letter was removed");
