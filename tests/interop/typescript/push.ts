// Only push the mixed load; somebody else works it off.
import { Queue } from 'bunqueue/client';
import { OPTIONS, connection, queueName, report, size, work } from './load';

const queue = new Queue(queueName, { connection });
const jobs = await queue.addBulk(
  Array.from({ length: size }, (_, n) => ({ name: 'task', data: work(n), opts: OPTIONS[work(n).kind] }))
);
queue.close();
report({ ids: jobs.map((job) => job.id) });
