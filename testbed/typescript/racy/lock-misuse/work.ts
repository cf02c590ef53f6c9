import { setTimeout as sleep } from "node:timers/promises";

// Stands for a remote check of a value.
export async function validate(value: string): Promise<string> {
  await sleep(20);
  if (value === "bad") throw new Error("value is not valid");
  return value;
}
