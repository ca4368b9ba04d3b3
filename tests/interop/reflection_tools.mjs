// What the scripts about Genkit's Reflection V2 share: free ports, programs in process groups of their own, the genkit command and the
// HTTP API of `genkit start`.
//
// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const cache = path.resolve(process.env.EW_INTEROP_CACHE ?? '.');
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// Waits until `probe` returns something; what it throws counts as "not yet".
export async function until(what, probe, ms = 15000) {
  const end = Date.now() + ms;
  for (let last; ;) {
    try {
      const value = await probe();
      if (value) return value;
    } catch (err) {
      last = err;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms${last ? ` (${last.message ?? last})` : ''}`);
    await pause(50);
  }
}

// A folder that is home and project to the genkit command; nothing of the user's own is read or written.
export const home = mkdtempSync(path.join(tmpdir(), 'ew-genkit-'));
writeFileSync(path.join(home, 'package.json'), '{"name":"interop","private":true}');

const running = new Set();
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GENKIT_')));
// Starts a program that leads a group of its own: {child, out, err, all, code, ended, kill}. `code` is null while it runs.
export function start(program, words, { env = {}, input, cwd = home } = {}) {
  const stdio = [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'];
  const child = spawn(program, words, { env: { ...inherited, HOME: home, ...env }, cwd, detached: true, stdio });
  const it = { child, out: '', err: '', all: '', code: null };
  child.stdout.setEncoding('utf8').on('data', (text) => { it.out += text; it.all += text; });
  child.stderr.setEncoding('utf8').on('data', (text) => { it.err += text; it.all += text; });
  it.ended = new Promise((resolve) => {
    child.on('error', (err) => { it.err += err; it.code = -1; running.delete(it); resolve(it); });
    child.on('close', (code, signal) => { it.code = code ?? signal; running.delete(it); resolve(it); });
  });
  it.kill = (signal = 'SIGKILL') => {
    try {
      process.kill(-child.pid, signal);
    } catch { /* it has gone */ }
    return it.ended;
  };
  it.said = (text, ms) => until(`"${text}" from ${path.basename(program)}`, () => it.all.includes(text), ms);
  if (input !== undefined) {
    child.stdin.on('error', () => {});
    if (input !== null) child.stdin.end(input);
  }
  running.add(it);
  return it;
}

export async function runToEnd(program, words, options, ms = 30000) {
  const it = start(program, words, options);
  const timers = [setTimeout(() => it.kill('SIGTERM'), ms), setTimeout(() => it.kill(), ms + 5000)];
  await it.ended;
  timers.forEach(clearTimeout);
  it.kill(); // whoever is left of its group
  return it;
}

// Nothing that was started is left, however the script ends: also not what a program of ours started in a group of its own. All of
// them, and nobody else, have our folder as their home.
function sweep() {
  for (const it of running) it.kill();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`HOME=${home}`)) process.kill(Number(pid), 'SIGKILL');
    } catch { /* not ours, or gone */ }
  }
  rmSync(home, { recursive: true, force: true });
}
process.on('exit', sweep);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

// ---- the genkit command ----

const QUIET = { GENKIT_CLI_DISABLE_UPDATE_NOTIFICATIONS: 'true', NO_COLOR: '1', FORCE_COLOR: '0' };
const program = path.join(cache, 'node_modules', 'genkit-cli', 'dist', 'bin', 'genkit.js');

export const genkit = (words, ms = 60000) => runToEnd(process.execPath, [program, '--non-interactive', ...words], { env: QUIET }, ms);

// `genkit start` with the program as its child, or alone: {api, query, mutate, post, env, kill}.
export async function genkitStart(port, command = [], more = []) {
  const words = ['start', '--non-interactive', '--experimental-reflection-v2', '-p', String(port), ...more];
  const it = start(process.execPath, [program, ...words, ...(command.length ? ['--', ...command] : [])], { env: QUIET });
  it.api = `http://127.0.0.1:${port}/api`;
  it.query = async (name, input) => {
    const answer = await (await fetch(`${it.api}/${name}${input === undefined ? '' : `?input=${encodeURIComponent(JSON.stringify(input))}`}`)).json();
    if (answer.error) throw new Error(answer.error.message);
    return answer.result.data;
  };
  it.post = (name, body) =>
    fetch(`${it.api}/${name}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  it.mutate = async (name, input) => {
    const answer = await (await it.post(name, input)).json();
    if (answer.error) throw new Error(answer.error.message);
    return answer.result.data;
  };
  try {
    await until('the API of genkit start', async () => it.code !== null || (await fetch(`${it.api}/__health`)).ok, 45000);
    if (it.code !== null) throw new Error(`genkit start left with ${it.code}`);
  } catch (err) {
    await it.kill();
    throw new Error(`${err.message}\n${it.all}`);
  }
  return it;
}
