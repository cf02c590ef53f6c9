// The API of better-sqlite3; package.json installs libsql under that name,
// because it comes with prebuilt binaries.
import Database from "better-sqlite3";
import { join } from "node:path";

export const db = new Database(join(process.env.TESTBED_DATA ?? ".", "bank.db"));

db.exec(`
  PRAGMA busy_timeout = 5000;
  CREATE TABLE IF NOT EXISTS accounts (
    id TEXT PRIMARY KEY,
    balance INTEGER NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]'
  );
  CREATE TABLE IF NOT EXISTS coupons (code TEXT PRIMARY KEY, redeemed_by TEXT);
  INSERT OR IGNORE INTO accounts (id, balance) VALUES ('alice', 100);
  INSERT OR IGNORE INTO coupons (code) VALUES ('WELCOME');
`);
