// A promise chain as a queue. One job that fails leaves a rejected tail, and
// every later job is rejected with it.
import { validate } from "./work.js";

let tail: Promise<unknown> = Promise.resolve();

export function enqueue(job: string): Promise<string> {
  const run = tail.then(() => validate(job));
  tail = run;
  return run;
}
