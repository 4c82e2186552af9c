// Only work off a load that somebody else pushes.
import { Queue, Worker } from 'bunqueue/client';
import { connection, process_, queueName, report, size, started, until } from './load';

const queue = new Queue(queueName, { connection });
const names = new Set<string>();
const worker = new Worker(
  queueName,
  (job) => {
    names.add(job.name);
    return process_(job);
  },
  { connection, concurrency: 8, pollTimeout: 500 }
);
await until(async () => {
  const counts = await queue.getJobCountsAsync();
  return counts.completed + counts.failed === size;
}, 'every job ends');
await worker.close();
queue.close();
report({ started, names: [...names] });
