import { setTimeout as sleep } from "node:timers/promises";

export class Worker {
  lateJobs = 0;
  private closed = false;
  private drained = false;
  private readonly running = new Set<Promise<string>>();

  async submit(job: string): Promise<string> {
    if (this.closed) throw new Error("the worker is closed");
    const prepared = await this.prepare(job);
    // drain() may have seen an empty set and finished since the test above.
    const done = this.run(prepared);
    this.running.add(done);
    return done.finally(() => this.running.delete(done));
  }

  async drain(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.running);
    this.drained = true;
  }

  private async prepare(job: string): Promise<string> {
    await sleep(300);
    return job;
  }

  private async run(job: string): Promise<string> {
    if (this.drained) this.lateJobs += 1;
    await sleep(5);
    return `ran ${job}`;
  }
}
