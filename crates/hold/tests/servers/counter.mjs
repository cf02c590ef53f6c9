// Adds to a number in memory or in a file, with an `await` between reading and writing. Racy on
// purpose. Answers in the order in which calls end.
import { createInterface } from 'node:readline';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import fs from 'node:fs';
import net from 'node:net';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';

let value = 0;
const add = async (pause) => {
  const seen = value;
  await pause();
  value = seen + 1;
};

// Somebody on the network, in the same process: what it sends arrives by a socket.
const echo = net.createServer((socket) => socket.pipe(socket));
await new Promise((listening) => echo.listen(0, '127.0.0.1', listening));
const overNetwork = () =>
  new Promise((done) => {
    const socket = net.connect(echo.address().port, '127.0.0.1');
    socket.once('data', () => socket.destroy());
    socket.on('close', done);
    socket.write('ping');
  });

const ways = {
  timer: () => add(() => new Promise((done) => setTimeout(done, 1))),
  timerPromise: () => add(() => sleep(1)),
  immediate: () => add(() => new Promise((done) => setImmediate(done))),
  network: () => add(overNetwork),
  child: () => add(() => promisify(execFile)('true')),
  callback: () => add(() => new Promise((done) => fs.readFile('counter', done))),
  handle: () =>
    add(async () => {
      const file = await fs.promises.open('counter');
      await file.read(Buffer.alloc(1), 0, 1, 0);
      await file.close();
    }),
  file: async () => {
    const seen = Number(await readFile('counter', 'utf8')) || 0;
    await writeFile('counter', String(seen + 1));
  },
  none: async () => {
    value += 1;
  },
  value: async () => value,
};

console.log('ready');
createInterface({ input: process.stdin }).on('line', async (line) => {
  console.log((await ways[line]()) ?? line);
});
