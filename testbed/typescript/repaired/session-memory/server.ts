// Shopping carts in memory, with prices from a catalog that is loaded on first use.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { addToCart, cartOf } from "./carts.js";
import { setPrice, priceOf } from "./catalog.js";

const server = new McpServer({ name: "session-memory", version: "1.0.0" });

server.registerTool(
  "cart_add",
  { description: "Puts an item into a cart.", inputSchema: { session: z.string(), sku: z.string() } },
  async ({ session, sku }) => {
    await addToCart(session, sku);
    return { content: [{ type: "text", text: `added ${sku}` }] };
  },
);

server.registerTool(
  "cart_show",
  { description: "Shows a cart.", inputSchema: { session: z.string() }, annotations: { readOnlyHint: true } },
  async ({ session }) => ({ content: [{ type: "text", text: JSON.stringify(cartOf(session)) }] }),
);

server.registerTool(
  "set_price",
  { description: "Sets the price of an item.", inputSchema: { sku: z.string(), price: z.number() } },
  async ({ sku, price }) => {
    await setPrice(sku, price);
    return { content: [{ type: "text", text: `${sku} costs ${price}` }] };
  },
);

server.registerTool(
  "price",
  { description: "Shows a price.", inputSchema: { sku: z.string() }, annotations: { readOnlyHint: true } },
  async ({ sku }) => ({ content: [{ type: "text", text: String(await priceOf(sku)) }] }),
);

await server.connect(new StdioServerTransport());
