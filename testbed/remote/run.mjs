// Servers that are reached by HTTP, with state in files, PostgreSQL or Redis: the racy ones are proved, the repaired ones are not.
// Usage: node run.mjs TOCTOU [NAME…]
// PostgreSQL and Redis are started by ../../scripts/services, and stopped at the end.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

function prove(...options) {
  const run = spawnSync(toctou, ['prove', '--quiet', '--output', 'json', '--budget', '90s', ...options], {
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
      if (racy.outcome === 'proved') {
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
    const repaired = prove('--budget', '40s', ...serves, ...server, '--repaired');
    check('http, repaired', isNot(repaired), repaired);
    const mute = prove('--http', '/mcp', '--', 'node', 'servers/http.mjs', '{workspace}/notes.json');
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
        const report = prove('--url', url, '--allow-changes', '--budget', flag ? '30s' : '60s', '--first');
        const kept = JSON.parse(readFileSync(file, 'utf8')).mine === 'to be kept';
        const said = report.notes.some((note) => note.includes('left alone') && note.includes('clear'));
        const outcome = flag ? isNot(report) : isProved(report, 'burst') || isProved(report, 'jitter');
        check(`url${flag}, with consent`, outcome && kept && said, report);
      } finally {
        server.kill();
      }
    }
  },
};

try {
  for (const [name, run] of Object.entries(cases)) {
    if (only.length === 0 || only.includes(name)) await run();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
