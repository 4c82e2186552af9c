// A mixed load whose outcome is known in advance. The kinds are those of tests/support/plan.py.
import { type Job, type JobOptions, UnrecoverableError } from 'bunqueue/client';

export type Work = { n: number; kind: string };

export const port = Number(process.env.PORT);
export const queueName = process.env.QUEUE!;
export const size = Number(process.env.JOBS ?? 0);
export const connection = { host: '127.0.0.1', port, poolSize: 4 };

const KINDS: Record<number, string> = { 3: 'flaky', 7: 'doomed', 9: 'hopeless', 11: 'late' };

export const OPTIONS: Record<string, JobOptions> = {
  good: {},
  late: { delay: 300 },
  flaky: { attempts: 3, backoff: 20 },
  doomed: { attempts: 2, backoff: { type: 'fixed', delay: 20 } },
  hopeless: { attempts: 5 },
};

export function work(n: number): Work {
  return { n, kind: KINDS[n % 25] ?? 'good' };
}

export const started: Record<number, number> = {};

export async function process_(job: Job<Work>): Promise<unknown> {
  const { n, kind } = job.data;
  started[n] = (started[n] ?? 0) + 1;
  if (kind === 'hopeless') throw new UnrecoverableError(`${n} is hopeless`);
  if (kind === 'doomed' || (kind === 'flaky' && started[n] === 1)) throw new Error(`${n} failed`);
  return { n, start: started[n] };
}

export async function until(look: () => Promise<boolean> | boolean, what: string, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await look())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${seconds} s`);
    await Bun.sleep(50);
  }
}

// The last line of standard output is what the test looks at.
export function report(found: unknown): never {
  console.log(JSON.stringify(found));
  process.exit(0);
}
