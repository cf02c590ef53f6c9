// Servers for the tests of this folder: Git over http, and `toctou serve`.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { toctou } from "./browser.mjs";

/** `toctou serve` with its store in a folder; gives `{ url, close }`. */
export async function serveSite(folder, ...options) {
  const site = spawn(toctou, ["serve", "--listen", "127.0.0.1:0", "--store", join(folder, "serve.db"), ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const url = await new Promise((resolve, reject) => {
    const lines = createInterface({ input: site.stderr });
    lines.on("line", (line) => {
      const address = line.match(/^toctou serve: (http:\S+)\/$/);
      if (address) resolve(address[1]);
    });
    lines.on("close", () => reject(new Error("toctou serve did not start")));
  });
  return { url, close: () => site.kill() };
}

/** The repositories of a folder, by Git's own `http-backend`. Gives `{ url, close }`; `slow` milliseconds pass before every answer. */
export async function serveGit(folder, { slow = 0 } = {}) {
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url, "http://localhost");
    const backend = spawn("git", ["http-backend"], {
      stdio: ["pipe", "pipe", "ignore"],
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: folder,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        REQUEST_METHOD: request.method,
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: request.headers["content-type"] || "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] || "",
        GIT_PROTOCOL: request.headers["git-protocol"] || "",
      },
    });
    backend.stdin.on("error", () => {});
    request.pipe(backend.stdin);
    const parts = [];
    backend.stdout.on("data", (part) => parts.push(part));
    backend.on("close", () => setTimeout(() => {
      const all = Buffer.concat(parts);
      const end = all.indexOf("\r\n\r\n");
      const headers = all.subarray(0, end).toString().split("\r\n").map((line) => line.split(": "));
      const status = headers.find(([name]) => name === "Status");
      response.writeHead(status ? parseInt(status[1], 10) : 200, Object.fromEntries(headers.filter(([name]) => name !== "Status")));
      response.end(all.subarray(end + 4));
    }, slow));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}
