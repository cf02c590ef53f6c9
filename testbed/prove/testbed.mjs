// The testbed's servers, from scan.json alone: every racy one is proved, no repaired one is.
// Usage: node testbed.mjs TOCTOU [--budget TIME] [--schedules COUNT] [--language NAME] [--without-services] [--every] [LANGUAGE/SERVER…]
// --language: typescript and python unless named; rust builds its servers first, which takes minutes.
// --without-services leaves out those that need a PostgreSQL or a Redis.
// --every looks for every finding instead of one for each server.
// PostgreSQL and Redis are started by ../../scripts/services where servers need them, and stopped at the end.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const TESTBED = dirname(HERE);
const AT_ONCE = 2;

const [given, ...rest] = process.argv.slice(2);
if (!given) throw new Error('usage: node testbed.mjs TOCTOU [--budget TIME] [--schedules COUNT] [--language NAME] [--every] [LANGUAGE/SERVER…]');
const toctou = resolve(given);
const option = (name, otherwise) => {
  const at = rest.indexOf(name);
  return at < 0 ? otherwise : rest.splice(at, 2)[1];
};
const budget = option('--budget', '5m');
const schedules = option('--schedules', '8');
const language = option('--language');
const flag = (name) => rest.includes(name) && rest.splice(rest.indexOf(name), 1).length > 0;
const every = flag('--every');
const withoutServices = flag('--without-services');
const work = mkdtempSync(join(tmpdir(), 'toctou-testbed-'));
// PostgreSQL does not run as root, and has to get to its files.
chmodSync(work, 0o711);
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const SERVICES = join(dirname(TESTBED), 'scripts/services');
let started;
/** The address of PostgreSQL or Redis, started when it is first asked for. */
function service(scheme) {
  if (!started) {
    const run = spawnSync(SERVICES, ['start', join(work, 'services')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    if (run.status !== 0) throw new Error('PostgreSQL and Redis do not start');
    started = run.stdout.trim().split('\n');
    // Before the folder is removed.
    process.prependListener('exit', () => spawnSync(SERVICES, ['stop', join(work, 'services')], { stdio: 'inherit' }));
  }
  return started.find((url) => url.startsWith(scheme));
}

function need(command, arguments_, cwd) {
  const run = spawnSync(command, arguments_, { cwd, encoding: 'utf8', stdio: ['ignore', 'inherit', 'inherit'] });
  if (run.status !== 0) throw new Error(`${command} ${arguments_.join(' ')}: ${run.error ?? run.status}`);
}

/** How each language's servers are made ready, and started. */
const LANGUAGES = {
  typescript: {
    // Each start compiles otherwise, and starts are what takes the time.
    build(servers) {
      const folder = join(TESTBED, 'typescript');
      const sources = servers.map((server) => `${server}/server.ts`);
      const options = ['--bundle', '--platform=node', '--format=esm', '--packages=external', '--outdir=build', '--outbase=.', '--log-level=error'];
      need(join(folder, 'node_modules/.bin/esbuild'), [...sources, ...options], folder);
    },
    command: (server) => ['--env', 'TESTBED_DATA={workspace}', '--', 'node', join(TESTBED, 'typescript/build', server, 'server.js')],
  },
  python: {
    build() {},
    command: (server) => [...(STATE[server.split('/')[1]]?.() ?? []), '--', join(HERE, 'venv/bin/python'), join(TESTBED, 'python', server, 'server.py')],
  },
  rust: {
    onRequest: true,
    build(servers) {
      for (const server of servers) {
        const manifest = join(TESTBED, 'rust', server, 'Cargo.toml');
        // What they use is built once for the racy ones and once for the others: two of one name cannot share a folder.
        need('cargo', ['build', '--quiet', '--manifest-path', manifest, '--target-dir', join(BUILT, dirname(server))]);
      }
    },
    command: (server) => ['--', join(BUILT, dirname(server), 'debug', basename(server))],
  },
};

/** Where the servers in Rust are built. */
const BUILT = join(dirname(TESTBED), 'target/testbed-rust');

/** State that is not in files. */
const STATE = {
  'session-memory': () => ['--state', service('postgres'), '--state-init', join(HERE, 'scenarios/shop.sql')],
  'rate-limiter': () => ['--state', service('redis')],
};

function run(...arguments_) {
  return new Promise((done, failed) => {
    const child = spawn(toctou, arguments_, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => (said += data));
    child.on('error', failed);
    child.on('close', (status) => done({ status, said }));
  });
}

/** One server: what was expected of it, and what came out. */
async function prove({ language, name, kind }) {
  const id = join(work, `${language}-${name}-${kind}`);
  const scan = `${id}-scan.json`;
  const { said } = await run('scan', '--quiet', '--no-config', '--exit-zero', '--output', `json=${scan}`, join(TESTBED, language, 'racy', name));
  const racy = kind === 'racy';
  const limits = racy ? (every ? [] : ['--first']) : ['--schedules', schedules];
  const { status, said: more } = await run('prove', '--quiet', '--budget', budget, ...limits, '--from', scan,
    '--output', `json=${id}.json`, ...LANGUAGES[language].command(`${kind}/${name}`));
  try {
    const report = JSON.parse(readFileSync(`${id}.json`, 'utf8'));
    // A twin of which nothing could be tried shows nothing.
    const expected = racy ? report.outcome === 'proved' && status === 1 : report.outcome === 'no-violation' && status === 0;
    return { report, expected };
  } catch {
    return { report: { outcome: 'error', summary: (said + more).trim().split('\n').slice(0, 4).join(' '), proofs: [], findings: [] }, expected: false };
  }
}

const jobs = [];
for (const [one, { build, onRequest }] of Object.entries(LANGUAGES)) {
  const expected = JSON.parse(readFileSync(join(TESTBED, one, 'expected.json'), 'utf8'));
  const wanted = (name) => (rest.length === 0 ? language === one || (!language && !onRequest) : rest.includes(`${one}/${name}`));
  const left = (name) => withoutServices && one === 'python' && name in STATE;
  const names = Object.keys(expected.racy).filter((name) => wanted(name) && !left(name));
  if (names.length > 0) build(names.flatMap((name) => [`racy/${name}`, `repaired/${name}`]));
  for (const name of names) for (const kind of ['racy', 'repaired']) jobs.push({ language: one, name, kind });
}
if (jobs.length === 0) throw new Error(`no such server: ${[language, ...rest].filter(Boolean).join(', ')}`);

let failed = 0;
const row = (cells) => console.log(`| ${cells.join(' | ')} |`);
row(['server', 'outcome', 'how', 'findings', 'schedules', 'pause points', 'seconds']);
row(Array(7).fill('---'));
async function worker() {
  for (let job = jobs.shift(); job; job = jobs.shift()) {
    const { report, expected } = await prove(job);
    if (!expected) failed += 1;
    const count = (status) => report.findings.filter((finding) => finding.status === status).length;
    const how = report.proofs.map((proof) => `${proof.tools.join(', ')}: ${proof.held ? `\`${proof.held}\`` : proof.strategy}`);
    row([
      `${job.language}/${job.kind}/${job.name}`,
      expected ? report.outcome : `${report.outcome} (**not as expected**: ${report.summary})`,
      how.join('; '),
      `${count('proved')} proved, ${count('not-reproduced')} not reproduced, ${count('inconclusive')} inconclusive`,
      report.schedules ?? '',
      report.points ?? '',
      report.seconds?.toFixed(0) ?? '',
    ]);
    if (!expected) {
      for (const finding of report.findings) console.error(`  ${finding.rule} (${finding.tools}): ${finding.status} ${finding.reason ?? ''}`);
      for (const attempt of report.attempts ?? []) console.error(`  ${attempt.what}, ${attempt.scope}: ${attempt.outcome} ${attempt.reason ?? ''}`);
    }
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, worker));
process.exitCode = failed ? 1 : 0;
