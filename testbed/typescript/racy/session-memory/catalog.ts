import { setTimeout as sleep } from "node:timers/promises";

let catalog: Map<string, number> | undefined;
let requests = 0;

// Stands for a request to a price service, some of which are slower than others.
async function fetchPrices(): Promise<Map<string, number>> {
  requests += 1;
  await sleep(50 * requests);
  return new Map([
    ["tea", 4],
    ["coffee", 6],
  ]);
}

async function prices(): Promise<Map<string, number>> {
  if (!catalog) {
    catalog = await fetchPrices();
  }
  return catalog;
}

export async function priceOf(sku: string): Promise<number> {
  return (await prices()).get(sku) ?? 1;
}

export async function setPrice(sku: string, price: number): Promise<void> {
  (await prices()).set(sku, price);
}
