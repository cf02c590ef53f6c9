// A promise chain as a queue. The caller gets the error, the tail forgets it.
import { validate } from "./work.js";

let tail: Promise<unknown> = Promise.resolve();

export function enqueue(job: string): Promise<string> {
  const run = tail.then(() => validate(job));
  tail = run.catch(() => undefined);
  return run;
}
