import { priceOf } from "./catalog.js";

interface Cart {
  items: string[];
  total: number;
}

const carts = new Map<string, Cart>();

export function cartOf(session: string): Cart {
  return carts.get(session) ?? { items: [], total: 0 };
}

export async function addToCart(session: string, sku: string): Promise<void> {
  const price = await priceOf(sku);
  // After the last await: nobody runs between this read and the write.
  const cart = cartOf(session);
  carts.set(session, { items: [...cart.items, sku], total: cart.total + price });
}
