// Accounts and coupons in SQLite. Every tool asks a remote service between its
// SELECT and its UPDATE, and other calls run while it waits.
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
    const row = db.prepare("SELECT balance FROM accounts WHERE id = ?").get(account) as { balance: number };
    if (row.balance < amount) throw new Error("not enough money");
    await assessRisk(account);
    db.prepare("UPDATE accounts SET balance = balance - ? WHERE id = ?").run(amount, account);
    return { content: [{ type: "text", text: `paid out ${amount}` }] };
  },
);

server.registerTool(
  "add_tag",
  { description: "Adds a tag to an account.", inputSchema: { account: z.string(), tag: z.string() } },
  async ({ account, tag }) => {
    const row = db.prepare("SELECT tags FROM accounts WHERE id = ?").get(account) as { tags: string };
    const tags = [...JSON.parse(row.tags), tag];
    await assessRisk(account);
    db.prepare("UPDATE accounts SET tags = ? WHERE id = ?").run(JSON.stringify(tags), account);
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
    const coupon = db.prepare("SELECT redeemed_by FROM coupons WHERE code = ?").get(code) as
      | { redeemed_by: string | null }
      | undefined;
    if (!coupon || coupon.redeemed_by !== null) throw new Error("coupon is not valid");
    await assessRisk(account);
    db.prepare("UPDATE coupons SET redeemed_by = ? WHERE code = ?").run(account, code);
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
