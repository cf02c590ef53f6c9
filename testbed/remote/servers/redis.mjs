// A counter of visits in Redis. Usage: REDIS_URL=… node redis.mjs [--repaired]
// The racy one reads it and sets it; the repaired one has Redis count.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createClient } from 'redis';
import { z } from 'zod';

const repaired = process.argv.includes('--repaired');
const redis = await createClient({ url: process.env.REDIS_URL }).connect();
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
const mcp = new McpServer({ name: 'visits', version: '1.0.0' });

mcp.registerTool('visit', { description: 'Counts a visit', inputSchema: { page: z.string() } }, async ({ page }) => {
  const key = `visits:${page}`;
  if (repaired) {
    await redis.incr(key);
  } else {
    const count = Number((await redis.get(key)) ?? 0);
    await redis.set(key, String(count + 1));
  }
  return text({ visited: page });
});
mcp.registerTool('visits', { description: 'All counters', annotations: { readOnlyHint: true } }, async () => {
  const keys = (await redis.keys('visits:*')).sort();
  return text(Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await redis.get(key)]))));
});
await mcp.connect(new StdioServerTransport());
