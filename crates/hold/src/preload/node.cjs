// Loaded by Node before the server (--require). Tells the supervisor of each completion of
// asynchronous work, and delivers it when the supervisor says so. Meanwhile the event loop goes
// on, so that others run between an `await` and what follows it.
//
// A supervisor that is gone holds nothing: what waits is delivered.
'use strict';

const address = process.env.TOCTOU_HOLD_SOCKET;
if (address && !process[Symbol.for('toctou.hold')]) {
  Object.defineProperty(process, Symbol.for('toctou.hold'), { value: true });

  const net = require('node:net');
  const fs = require('node:fs');
  const timers = require('node:timers');
  const { isMainThread } = require('node:worker_threads');

  // ---- the line to the supervisor

  const waiting = new Map();
  let next = 1;
  let open = true;
  const line = net.connect(address);
  line.unref();
  const tell = (message) => {
    if (open) line.write(JSON.stringify(message) + '\n');
  };
  const lost = () => {
    open = false;
    for (const deliver of waiting.values()) deliver();
    waiting.clear();
  };
  let rest = '';
  line.setEncoding('utf8');
  line.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const id of lines) {
      const deliver = waiting.get(Number(id));
      waiting.delete(Number(id));
      if (deliver) deliver();
      if (waiting.size === 0) line.unref();
    }
  });
  line.on('error', lost);
  line.on('close', lost);
  tell({ hello: 'node', pid: process.pid, main: isMainThread });

  // Calls `deliver` when it may be.
  const gate = (kind, name, path, deliver) => {
    if (!open) return deliver();
    const id = next++;
    waiting.set(id, deliver);
    // A server that waits for this only must not end.
    line.ref();
    tell({ id, kind, name, path });
  };
  const gated = (kind, name, path) => new Promise((go) => gate(kind, name, path, go));

  const pathOf = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof URL || Buffer.isBuffer(value)) return String(value);
    return undefined;
  };

  // What has been patched must look as before: name, length and own properties such as
  // util.promisify.custom.
  const disguise = (patched, original) => {
    for (const key of Reflect.ownKeys(original)) {
      const property = Object.getOwnPropertyDescriptor(original, key);
      if (key !== 'prototype' && property.configurable) Object.defineProperty(patched, key, property);
    }
    return patched;
  };
  const patch = (object, name, make) => {
    const original = object[name];
    if (typeof original !== 'function') return;
    try {
      object[name] = disguise(make(original), original);
    } catch {
      // Frozen: then it is not seen.
    }
  };

  const afterPromise = (kind, label) => (original) =>
    function (...args) {
      const result = original.apply(this, args);
      if (!result || typeof result.then !== 'function') return result;
      const path = pathOf(args[0]);
      return result.then(
        (value) => gated(kind, label, path).then(() => value),
        (error) => gated(kind, label, path).then(() => Promise.reject(error)),
      );
    };
  const afterCallback = (kind, label) => (original) =>
    function (...args) {
      const last = args.length - 1;
      const callback = args[last];
      if (typeof callback === 'function') {
        const path = pathOf(args[0]);
        args[last] = function (...results) {
          gate(kind, label, path, () => callback.apply(this, results));
        };
      }
      return original.apply(this, args);
    };

  // ---- files

  const isOperation = (object, name) => typeof object[name] === 'function' && /^[a-z]/.test(name);
  const notCompletions = new Set(['watch', 'watchFile', 'unwatchFile', 'createReadStream', 'createWriteStream']);
  for (const name of Object.keys(fs.promises)) {
    if (isOperation(fs.promises, name) && !notCompletions.has(name)) {
      patch(fs.promises, name, afterPromise('file', `fs.promises.${name}`));
    }
  }
  for (const name of Object.keys(fs)) {
    if (isOperation(fs, name) && !name.endsWith('Sync') && !notCompletions.has(name)) {
      patch(fs, name, afterCallback('file', `fs.${name}`));
    }
  }
  // Methods of an open file are on a class that only an open file leads to.
  const openFile = fs.promises.open;
  let handles = false;
  patch(fs.promises, 'open', () =>
    async function (...args) {
      const handle = await openFile.apply(this, args);
      if (!handles) {
        handles = true;
        const methods = Object.getPrototypeOf(handle);
        for (const name of Object.getOwnPropertyNames(methods)) {
          const property = Object.getOwnPropertyDescriptor(methods, name);
          const isMethod = property && typeof property.value === 'function' && property.writable;
          if (isMethod && name !== 'constructor' && isOperation(methods, name)) {
            patch(methods, name, afterPromise('file', `FileHandle.${name}`));
          }
        }
      }
      return handle;
    });

  // ---- timers

  // A timer that was cleared while its callback waits must not fire.
  const cleared = new WeakSet();
  const timer = (label) => (original) =>
    function (callback, ...args) {
      if (typeof callback !== 'function') return original.call(this, callback, ...args);
      const fired = function (...values) {
        gate('timer', label, undefined, () => {
          if (!cleared.has(handle)) callback.apply(this, values);
        });
      };
      const handle = original.call(this, fired, ...args);
      return handle;
    };
  const clear = (original) =>
    function (handle) {
      if (handle && typeof handle === 'object') cleared.add(handle);
      return original.call(this, handle);
    };
  for (const where of [globalThis, timers]) {
    patch(where, 'setTimeout', timer('setTimeout'));
    patch(where, 'setImmediate', timer('setImmediate'));
    patch(where, 'clearTimeout', clear);
    patch(where, 'clearImmediate', clear);
  }
  const timerPromises = require('node:timers/promises');
  patch(timerPromises, 'setTimeout', afterPromise('timer', 'timers.promises.setTimeout'));
  patch(timerPromises, 'setImmediate', afterPromise('timer', 'timers.promises.setImmediate'));
  for (const [where, name] of [[globalThis, 'setTimeout'], [timers, 'setTimeout'], [globalThis, 'setImmediate'], [timers, 'setImmediate']]) {
    const promised = { value: timerPromises[name], configurable: true };
    Object.defineProperty(where[name], require('node:util').promisify.custom, promised);
  }

  // ---- the network, and other processes

  // Events of an emitter, from the one that waits on, come in their order.
  const queued = Symbol('toctou.queued');
  const inOrder = (emitter, kind, label, first, emit) => {
    if (emitter[queued]) {
      emitter[queued].push(emit);
      return true;
    }
    if (!first) return emit();
    emitter[queued] = [emit];
    gate(kind, label, undefined, () => {
      const events = emitter[queued];
      emitter[queued] = undefined;
      for (let n = 0; n < events.length; n++) {
        events[n]();
        // One of them may have begun to wait again: what is left comes after it.
        if (emitter[queued]) {
          emitter[queued].push(...events.slice(n + 1));
          break;
        }
      }
    });
    return true;
  };
  const client = Symbol('toctou.client');
  patch(net.Socket.prototype, 'connect', (original) =>
    function (...args) {
      if (this !== line) this[client] = true;
      return original.apply(this, args);
    });
  const ofSocket = new Set(['data', 'readable', 'end', 'close']);
  patch(net.Socket.prototype, 'emit', (original) =>
    function (event, ...args) {
      if (!this[client] || !ofSocket.has(event)) return original.call(this, event, ...args);
      return inOrder(this, 'network', 'net.Socket data', event === 'data', () =>
        original.call(this, event, ...args));
    });
  const { ChildProcess } = require('node:child_process');
  const ofChild = new Set(['exit', 'close']);
  patch(ChildProcess.prototype, 'emit', (original) =>
    function (event, ...args) {
      if (!ofChild.has(event)) return original.call(this, event, ...args);
      return inOrder(this, 'process', 'child exit', event === 'exit', () => original.call(this, event, ...args));
    });
  if (typeof globalThis.fetch === 'function') patch(globalThis, 'fetch', afterPromise('network', 'fetch'));

  // Names imported by `import { readFile } from 'fs'` are copies.
  require('node:module').syncBuiltinESMExports();
}
