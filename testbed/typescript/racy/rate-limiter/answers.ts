import { setTimeout as sleep } from "node:timers/promises";

// Stands for a service that is paid by the call.
export async function answer(question: string): Promise<string> {
  await sleep(20);
  return `${question}: 42`;
}
