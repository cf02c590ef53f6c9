import { setTimeout as sleep } from "node:timers/promises";

// Stands for a remote service that judges whether a request may go on.
export async function assessRisk(account: string): Promise<void> {
  await sleep(20);
  if (account === "") throw new Error("no account named");
}
