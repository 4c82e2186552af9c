// Push a mixed load and work it off in the same program.
import { Queue, Worker } from 'bunqueue/client';
import { OPTIONS, connection, process_, queueName, report, size, started, until, work } from './load';

const autoBatch = process.env.AUTO_BATCH === '1';
const queue = new Queue(queueName, {
  connection,
  autoBatch: { enabled: autoBatch, maxSize: 50, maxDelayMs: 5 },
});
const seen = { completed: 0, failed: 0 };
const workers = [1, 2].map(() => {
  const worker = new Worker(queueName, process_, { connection, concurrency: 10, batchSize: 10, pollTimeout: 500 });
  worker.on('completed', () => void seen.completed++);
  worker.on('failed', () => void seen.failed++);
  worker.on('error', (error: Error) => console.error('worker:', error.message));
  return worker;
});

await Promise.all(workers.map((worker) => worker.waitUntilReady()));

const ids: Record<string, number> = {};
const half = Math.floor(size / 2);
for (let start = 0; start < half; start += 200) {
  const numbers = Array.from({ length: Math.min(200, half - start) }, (_, i) => start + i);
  const jobs = await Promise.all(numbers.map((n) => queue.add('task', work(n), OPTIONS[work(n).kind])));
  jobs.forEach((job, i) => void (ids[job.id] = numbers[i]!));
}
for (let start = half; start < size; start += 100) {
  const numbers = Array.from({ length: Math.min(100, size - start) }, (_, i) => start + i);
  const jobs = await queue.addBulk(
    numbers.map((n) => ({ name: 'task', data: work(n), opts: OPTIONS[work(n).kind] }))
  );
  jobs.forEach((job, i) => void (ids[job.id] = numbers[i]!));
}

await until(async () => {
  const counts = await queue.getJobCountsAsync();
  return counts.completed + counts.failed === size;
}, 'every job ends', 60 + size / 50);
const counts = await queue.getJobCountsAsync();
await Promise.all(workers.map((worker) => worker.close()));
queue.close();
report({ ids, started, seen, counts });
