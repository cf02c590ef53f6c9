const LIMIT = 5;
const WINDOW_MS = 60_000;

const windows = new Map<string, { count: number; resetAt: number }>();

export async function limited<T>(caller: string, work: () => Promise<T>): Promise<T> {
  const now = Date.now();
  const last = windows.get(caller);
  const current = last && last.resetAt > now ? last : { count: 0, resetAt: now + WINDOW_MS };
  if (current.count >= LIMIT) throw new Error("rate limit exceeded");
  const result = await work();
  // Only answered questions count; until then others pass the check above.
  windows.set(caller, { count: current.count + 1, resetAt: current.resetAt });
  return result;
}
