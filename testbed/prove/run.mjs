// Published servers, proved racy or not: each case of cases.json, and a table of what came out.
// Usage: node run.mjs TOCTOU [--budget TIME] [--clean COUNT] [--strategy NAME] [--some] [SERVER…]
// A race that is found ends its run. Who has none uses all of its time, or as many schedules as `--clean` says.
// --some: one case for each thing that can go wrong, for CI.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
process.chdir(HERE);
const read = (name) => JSON.parse(readFileSync(join(HERE, name), 'utf8'));

const [toctou, ...rest] = process.argv.slice(2);
if (!toctou) throw new Error('usage: node run.mjs TOCTOU [--budget TIME] [--clean COUNT] [--strategy NAME] [--some] [SERVER…]');
const option = (name, otherwise) => {
  const at = rest.indexOf(name);
  return at < 0 ? otherwise : rest.splice(at, 2)[1];
};
const budget = option('--budget', '2m');
const clean = option('--clean');
const strategy = option('--strategy', 'hold');
const some = rest.includes('--some') && rest.splice(rest.indexOf('--some'), 1).length > 0;

const servers = read('servers.json').mcpServers;
const pinned = readFileSync(join(HERE, 'requirements.txt'), 'utf8');
const versionOf = (name) => {
  const manifest = join(HERE, 'node_modules', name, 'package.json');
  if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, 'utf8')).version;
  return pinned.match(new RegExp(`^${name}==(.*)$`, 'm'))?.[1] ?? '?';
};

/** What the user would type. */
function target({ server, guard }) {
  if (!guard) return ['--servers', 'servers.json', '--server', server];
  const { command, args = [], env = {} } = servers[server];
  const variables = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  return [...variables, '--', toctou, 'guard', '--', command, ...args.map((a) => (existsSync(a) ? join(HERE, a) : a))];
}

function prove(testCase) {
  const more = testCase.scenario ? ['--scenario', testCase.scenario] : [];
  if (clean && testCase.expect !== 'proved') more.push('--schedules', clean);
  const options = ['--processes', testCase.processes, '--strategy', strategy, '--budget', budget, '--first', ...more];
  const arguments_ = ['prove', '--quiet', '--output', 'json', ...options, ...target(testCase)];
  const run = spawnSync(toctou, arguments_, { encoding: 'utf8', maxBuffer: 1 << 28 });
  try {
    return JSON.parse(run.stdout);
  } catch {
    return { outcome: 'error', summary: run.stderr.trim().split('\n').slice(0, 3).join(' '), proofs: [] };
  }
}

let failed = 0;
console.log('| server | version | processes | calls | outcome | held at | replays | schedules | pause points | seconds |');
console.log('|---|---|---|---|---|---|---|---|---|---|');
for (const testCase of read('cases.json')) {
  if ((rest.length > 0 && !rest.includes(testCase.server)) || (some && !testCase.some)) continue;
  const report = prove(testCase);
  const [proof] = report.proofs;
  const replays = proof?.replays;
  const proved = report.outcome === 'proved' && (strategy !== 'hold' || replays.reproduced === replays.of);
  // A server of which nothing could be held shows nothing.
  const expected = testCase.expect === 'proved' ? proved : report.outcome === testCase.expect && report.points > 0;
  if (!expected) failed += 1;
  const cells = [
    testCase.guard ? `${testCase.package} behind \`toctou guard\`` : testCase.package,
    versionOf(testCase.package),
    testCase.processes,
    testCase.scenario ? 'scenario file' : 'made up',
    `${report.outcome}${expected ? '' : ` (**expected ${testCase.expect}**: ${report.summary})`}`,
    proof ? `${proof.tools.join(', ')}: \`${proof.held ?? proof.strategy}\`` : '',
    replays ? `${replays.reproduced} of ${replays.of}` : '',
    report.schedules ?? '',
    report.points ?? '',
    report.seconds?.toFixed(0) ?? '',
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
process.exitCode = failed ? 1 : 0;
