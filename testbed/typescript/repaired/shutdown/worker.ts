import { setTimeout as sleep } from "node:timers/promises";

export class Worker {
  lateJobs = 0;
  private closed = false;
  private drained = false;
  private readonly running = new Set<Promise<string>>();

  async submit(job: string): Promise<string> {
    if (this.closed) throw new Error("the worker is closed");
    // Registered in the same step as the test: drain() sees it, or it is refused.
    const done = this.prepareAndRun(job);
    this.running.add(done);
    return done.finally(() => this.running.delete(done));
  }

  async drain(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.running);
    this.drained = true;
  }

  private async prepareAndRun(job: string): Promise<string> {
    await sleep(300);
    if (this.drained) this.lateJobs += 1;
    await sleep(5);
    return `ran ${job}`;
  }
}
