// The calls of an ordinary program: options, progress, logs, pause, counts, state and results.
import { Queue, Worker } from 'bunqueue/client';
import { connection, queueName, report, until } from './load';

const found: Record<string, unknown> = {};
const queue = new Queue(queueName, { connection });
await queue.waitUntilReady();
await queue.pause();
found.paused = await queue.isPausedAsync();
const first = await queue.add('mail', { to: 'zoë' }, { jobId: `${queueName}:custom`, priority: 5 });
const again = await queue.add('mail', { to: 'somebody else' }, { jobId: `${queueName}:custom` });
found.sameId = first.id === again.id && first.id === `${queueName}:custom`;
const later = await queue.add('later', {}, { delay: 60_000, durable: true });
found.states = [await queue.getJobState(first.id), await queue.getJobState(later.id)];
found.count = await queue.countAsync();

const delivered: unknown[] = [];
let release = () => {};
const held = new Promise<void>((resolve) => (release = resolve));
const worker = new Worker(
  queueName,
  async (job) => {
    delivered.push([job.name, job.data, job.opts.priority]);
    await job.updateProgress(60, 'more than half');
    await job.log('a line');
    await held;
    return { sent: true };
  },
  { connection, pollTimeout: 1000 }
);
worker.on('error', (error: Error) => console.error('worker:', error.message));
await worker.waitUntilReady();
await Bun.sleep(300);
found.deliveredWhilePaused = delivered.length;
await queue.resume();
await until(() => delivered.length === 1, 'the job is delivered after the resume', 5);
await until(async () => (await queue.getJob(first.id))?.progress === 60, 'progress is seen', 5);
found.running = await queue.getJobState(first.id);
await until(async () => (await queue.getJobLogs(first.id)).count === 1, 'the log line is seen', 5);
found.logs = (await queue.getJobLogs(first.id)).logs;
release();
await until(async () => (await queue.getJobState(first.id)) === 'completed', 'it completes', 5);
const job = await queue.getJob(first.id);
found.returnvalue = job!.returnvalue;
found.delivered = delivered;
found.workers = (await queue.getWorkersCount()) > 0;
await worker.close();
queue.close();
report(found);
