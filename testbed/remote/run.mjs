// Servers that are reached by HTTP, with state in files, PostgreSQL or Redis: the racy ones are proved, the repaired ones are not.
// Usage: node run.mjs TOCTOU [NAME…]
// PostgreSQL and Redis are started by ../../scripts/services, and stopped at the end.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const toctou = process.argv[2] && resolve(process.argv[2]);
const only = process.argv.slice(3);
if (!toctou) throw new Error('usage: node run.mjs TOCTOU [NAME…]');
process.chdir(HERE);
const folder = mkdtempSync(join(tmpdir(), 'toctou-remote-'));
// PostgreSQL does not run as root, and has to get to its files.
chmodSync(folder, 0o711);

function prove(...options) {
  const budget = options.includes('--budget') ? [] : ['--budget', '2m'];
  const run = spawnSync(toctou, ['prove', '--quiet', '--output', 'json', ...budget, ...options], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  let report;
  try {
    report = JSON.parse(run.stdout);
  } catch {
    report = { outcome: 'error', summary: run.stderr.trim(), proofs: [], notes: [] };
  }
  return { status: run.status, stderr: run.stderr, ...report };
}

/** Enough for every way of trying, and not for every pair of calls. */
const SOME = ['--schedules', '10'];

let failed = 0;
function check(name, holds, report) {
  const [proof] = report.proofs ?? [];
  const how = proof ? `${proof.strategy} ${proof.scope} ${proof.replays.reproduced}/${proof.replays.of}` : '';
  const time = report.seconds === undefined ? '' : `${report.seconds.toFixed(0)} s`;
  console.log(`${holds ? 'ok    ' : 'FAILED'} ${name}: ${report.outcome} ${how} ${time}`);
  if (!holds) {
    failed += 1;
    console.log(JSON.stringify({ summary: report.summary, notes: report.notes, attempts: report.attempts, stderr: report.stderr }, null, 1));
  }
}
const isProved = (report, strategy) => {
  const [proof] = report.proofs;
  return report.outcome === 'proved' && proof.strategy === strategy && proof.replays.reproduced === proof.replays.of;
};
const isNot = (report) => ['no-violation', 'inconclusive'].includes(report.outcome) && report.schedules > 0;
const freePort = () =>
  new Promise((done) => {
    const listener = createServer().listen(0, '127.0.0.1', () => {
      const { port } = listener.address();
      listener.close(() => done(port));
    });
  });

const cases = {
  /** Started here: held at system calls, in one process and in two, and replayed. */
  http() {
    const serves = ['--http', '/mcp', '--env', 'PORT={port}'];
    const server = ['--', 'node', 'servers/http.mjs', '{workspace}/notes.json'];
    for (const processes of ['one', 'two']) {
      const options = ['--processes', processes, '--strategy', 'hold', '--first', ...serves];
      const race = join(folder, `race-${processes}`);
      const racy = prove(...options, '--reproducer', race, ...server);
      check(`http, ${processes}`, isProved(racy, 'hold') && racy.status === 1, racy);
      if (racy.outcome === 'proved' && processes === 'two') {
        const again = spawnSync(toctou, ['prove', '--quiet', '--replay', join(race, 'replay.json')], { encoding: 'utf8' });
        check(`http, ${processes}, replayed`, again.status === 1, { outcome: again.stdout.split('\n')[0], stderr: again.stderr });
      }
    }
    // Answers as JSON and not as a stream; all at once; and without toctou.
    const race = join(folder, 'race-burst');
    const burst = prove('--processes', 'one', '--strategy', 'burst', '--first', '--reproducer', race, ...serves, ...server, '--json');
    check('http, all at once', isProved(burst, 'burst'), burst);
    if (burst.outcome === 'proved') {
      const driver = spawnSync(join(race, 'run.sh'), ['20'], { encoding: 'utf8' });
      check('http, without toctou', driver.status === 1, { outcome: driver.stdout.split('\n').at(-3), stderr: driver.stderr });
    }
    const repaired = prove(...SOME, ...serves, ...server, '--repaired');
    check('http, repaired', isNot(repaired), repaired);
    const mute = prove('--budget', '10s', '--http', '/mcp', '--', 'node', 'servers/http.mjs', '{workspace}/notes.json');
    check('http, a server that is not told its port', mute.status === 2 && mute.stderr.includes('{port}'), mute);
  },

  /** Running already: nothing is called without consent, and nothing of its own is touched. */
  async url() {
    for (const flag of ['', '--repaired']) {
      const file = join(folder, `notes${flag}.json`);
      writeFileSync(file, JSON.stringify({ mine: 'to be kept' }));
      const port = await freePort();
      const server = spawn('node', ['servers/http.mjs', file, flag], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' });
      try {
        const open = () => new Promise((done) => connect(port, '127.0.0.1').once('connect', () => done(true)).once('error', () => done(false)));
        while (!(await open())) await new Promise((done) => setTimeout(done, 20));
        const url = `http://127.0.0.1:${port}/mcp`;
        const refused = prove('--url', url);
        const untouched = Object.keys(JSON.parse(readFileSync(file, 'utf8'))).length === 1;
        check(`url${flag}, without consent`, refused.status === 2 && refused.stderr.includes('--allow-changes') && untouched, refused);
        const report = prove('--url', url, '--allow-changes', ...(flag ? SOME : []), '--first');
        const kept = JSON.parse(readFileSync(file, 'utf8')).mine === 'to be kept';
        const said = report.notes.some((note) => note.includes('left alone') && note.includes('clear'));
        const outcome = flag ? isNot(report) : isProved(report, 'burst') || isProved(report, 'jitter');
        check(`url${flag}, with consent`, outcome && kept && said, report);
      } finally {
        server.kill();
      }
    }
  },

  /** A scratch database for each run; a role that may make none gets schemas. Nothing is left, and nothing else is touched. */
  async postgres() {
    const { default: pg } = await import('pg');
    const { postgres: url } = services();
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query("CREATE ROLE plain LOGIN; CREATE SCHEMA own AUTHORIZATION plain; GRANT CREATE ON DATABASE postgres TO plain; CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
    const state = ['--state', url, '--state-init', 'servers/accounts.sql'];
    const server = ['--', 'node', 'servers/postgres.mjs'];
    for (const processes of ['one', 'two']) {
      const race = join(folder, `postgres-${processes}`);
      const racy = prove('--processes', processes, '--strategy', 'await-hold', '--first', '--reproducer', race, ...state, ...server);
      check(`postgres, ${processes}`, isProved(racy, 'await-hold'), racy);
      if (racy.outcome === 'proved' && processes === 'two') {
        const again = spawnSync(toctou, ['prove', '--quiet', '--replay', join(race, 'replay.json'), '--state', url], { encoding: 'utf8' });
        check('postgres, replayed', again.status === 1, { outcome: again.stdout.split('\n')[0], stderr: again.stderr });
        const secret = readFileSync(join(race, 'replay.json'), 'utf8').includes(url);
        check('postgres, no address in the reproducer', !secret, { outcome: '' });
      }
    }
    const plain = url.replace('toctou@', 'plain@');
    const schema = prove('--processes', 'one', '--strategy', 'await-hold', '--first', '--state', plain, '--state-init', 'servers/accounts.sql', ...server);
    const said = schema.notes.some((note) => note.includes('scratch schema'));
    check('postgres, by schemas', isProved(schema, 'await-hold') && said, schema);
    const repaired = prove(...SOME, ...state, ...server, '--repaired');
    check('postgres, repaired', isNot(repaired), repaired);
    const wrong = prove('--state', url.replace(/:\d+\//, ':1/'), ...server);
    check('postgres, nobody there', wrong.status === 2 && wrong.stderr.includes('PostgreSQL cannot be used'), wrong);
    const left = await admin.query("SELECT datname FROM pg_database WHERE datname LIKE 'toctou%' UNION SELECT nspname FROM pg_namespace WHERE nspname LIKE 'toctou%'");
    const kept = await admin.query('SELECT n FROM kept');
    check('postgres, nothing left and nothing lost', left.rows.length === 0 && kept.rows[0].n === 7, { outcome: JSON.stringify(left.rows) });
    await admin.end();
  },

  /** An empty database number for each run. */
  async redis() {
    const { createClient } = await import('redis');
    const { redis: url } = services();
    const own = await createClient({ url: `${url}14` }).connect();
    await own.set('mine', 'to be kept');
    const server = ['--', 'node', 'servers/redis.mjs'];
    const racy = prove('--processes', 'two', '--strategy', 'await-hold', '--first', '--state', url, ...server);
    check('redis', isProved(racy, 'await-hold'), racy);
    const repaired = prove(...SOME, '--state', url, ...server, '--repaired');
    check('redis, repaired', isNot(repaired), repaired);
    const keys = await own.info('keyspace');
    const kept = (await own.get('mine')) === 'to be kept' && keys.match(/^db/gm).length === 1;
    check('redis, nothing left and nothing lost', kept, { outcome: keys.trim() });
    await own.close();
  },
};

let started;
function services() {
  if (!started) {
    started = {};
    const run = spawnSync('../../scripts/services', ['start', join(folder, 'services')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    if (run.status !== 0) throw new Error('PostgreSQL and Redis do not start');
    const urls = run.stdout.trim().split('\n');
    started = { redis: urls.find((url) => url.startsWith('redis')), postgres: urls.find((url) => url.startsWith('postgres')) };
  }
  return started;
}

try {
  for (const [name, run] of Object.entries(cases)) {
    if (only.length === 0 || only.includes(name)) await run();
  }
} finally {
  if (started) spawnSync('../../scripts/services', ['stop', join(folder, 'services')], { stdio: 'inherit' });
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
