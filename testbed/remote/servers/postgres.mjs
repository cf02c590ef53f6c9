// Accounts in PostgreSQL. Usage: DATABASE_URL=… node postgres.mjs [--repaired]
// The racy one reads a balance and writes it back; the repaired one locks the row.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import pg from 'pg';
import { z } from 'zod';

const repaired = process.argv.includes('--repaired');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
const mcp = new McpServer({ name: 'accounts', version: '1.0.0' });

mcp.registerTool(
  'deposit',
  { description: 'Puts money into an account', inputSchema: { account: z.string(), amount: z.number().int().min(1) } },
  async ({ account, amount }) => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const lock = repaired ? 'FOR UPDATE' : '';
      const { rows } = await client.query(`SELECT balance FROM accounts WHERE name = $1 ${lock}`, [account]);
      if (rows.length === 0) throw new Error(`there is no account ${account}`);
      const balance = rows[0].balance + amount;
      await client.query('UPDATE accounts SET balance = $2 WHERE name = $1', [account, balance]);
      await client.query('COMMIT');
      return text({ balance });
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  },
);
mcp.registerTool('balances', { description: 'All accounts', annotations: { readOnlyHint: true } }, async () => {
  const { rows } = await pool.query('SELECT name, balance FROM accounts ORDER BY name');
  return text(rows);
});
await mcp.connect(new StdioServerTransport());
