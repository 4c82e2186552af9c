// Jobs that take far longer than their lease, kept alive by heartbeats.
import { Queue, Worker } from 'bunqueue/client';
import { connection, queueName, report, until } from './load';

const queue = new Queue(queueName, { connection });
const started: Record<number, number> = {};
const workers = [1, 2].map(
  () =>
    new Worker(
      queueName,
      async (job) => {
        started[job.data.n] = (started[job.data.n] ?? 0) + 1;
        await Bun.sleep(3500);
        return 'done';
      },
      { connection, concurrency: 4, lockDuration: 800, heartbeatInterval: 200, pollTimeout: 500 }
    )
);
const jobs = await queue.addBulk([0, 1, 2, 3].map((n) => ({ name: 'long', data: { n } })));
await until(async () => (await queue.getJobCountsAsync()).completed === jobs.length, 'they complete', 15);
const kept = await queue.getJob(jobs[0]!.id);
await Promise.all(workers.map((worker) => worker.close()));
queue.close();
report({ started, attemptsMade: kept!.attemptsMade });
