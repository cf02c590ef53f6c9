// Accounts and coupons in SQLite. The remote service is asked first; every
// decision is then part of the statement, or of the transaction, that writes.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { db } from "./database.js";
import { assessRisk } from "./risk.js";

const server = new McpServer({ name: "bank-sqlite", version: "1.0.0" });

server.registerTool(
  "withdraw",
  {
    description: "Takes money out of an account that has it.",
    inputSchema: { account: z.string(), amount: z.number().int().positive() },
  },
  async ({ account, amount }) => {
    await assessRisk(account);
    const result = db
      .prepare("UPDATE accounts SET balance = balance - ? WHERE id = ? AND balance >= ?")
      .run(amount, account, amount);
    if (result.changes === 0) throw new Error("not enough money");
    return { content: [{ type: "text", text: `paid out ${amount}` }] };
  },
);

const addTag = db.transaction((account: string, tag: string) => {
  const row = db.prepare("SELECT tags FROM accounts WHERE id = ?").get(account) as { tags: string };
  const tags = [...JSON.parse(row.tags), tag];
  db.prepare("UPDATE accounts SET tags = ? WHERE id = ?").run(JSON.stringify(tags), account);
});

server.registerTool(
  "add_tag",
  { description: "Adds a tag to an account.", inputSchema: { account: z.string(), tag: z.string() } },
  async ({ account, tag }) => {
    await assessRisk(account);
    addTag.immediate(account, tag);
    return { content: [{ type: "text", text: `tagged ${tag}` }] };
  },
);

server.registerTool(
  "redeem_coupon",
  {
    description: "Redeems a coupon, which can be done once.",
    inputSchema: { account: z.string(), code: z.string() },
  },
  async ({ account, code }) => {
    await assessRisk(account);
    const result = db
      .prepare("UPDATE coupons SET redeemed_by = ? WHERE code = ? AND redeemed_by IS NULL")
      .run(account, code);
    if (result.changes === 0) throw new Error("coupon is not valid");
    return { content: [{ type: "text", text: `redeemed ${code}` }] };
  },
);

server.registerTool(
  "account",
  { description: "Shows an account.", inputSchema: { account: z.string() }, annotations: { readOnlyHint: true } },
  async ({ account }) => {
    const row = db.prepare("SELECT balance, tags FROM accounts WHERE id = ?").get(account);
    return { content: [{ type: "text", text: JSON.stringify(row) }] };
  },
);

await server.connect(new StdioServerTransport());
