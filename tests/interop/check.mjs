// What the scripts against npm peers share: loading a peer from the cache, checks that print a line each, the summary, child programs.
//
// SPDX-License-Identifier: Apache-2.0
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const LIMIT_MS = 20000;
const home = path.resolve(process.env.EW_INTEROP_CACHE ?? '.');
const require = createRequire(path.join(home, 'package.json'));
export const everywire = process.env.EVERYWIRE;

export const load = (name) => import(pathToFileURL(require.resolve(name)));
export const versionOf = (name) => JSON.parse(readFileSync(path.join(home, 'node_modules', name, 'package.json'), 'utf8')).version;

let number = 0;
let failed = 0;

export async function within(promise, ms = LIMIT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export async function check(name, body, ms = LIMIT_MS) {
  number += 1;
  try {
    await within(body(), ms);
    console.log(`ok ${number} - ${name}`);
  } catch (err) {
    failed += 1;
    console.log(`FAIL ${number} - ${name}`);
    console.log(`# ${String(err?.stack ?? err).replaceAll('\n', '\n# ')}`);
  }
}

export function finish(name) {
  console.log(`interop ${name}: ${number - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

// Runs the program to its end: {code, out, err}; lines of its input, if any, are `input`.
export function run(program, words, input) {
  return new Promise((resolve) => {
    const child = execFile(program, words, { timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 }, (error, out, err) =>
      resolve({ code: error ? (error.code ?? error.signal) : 0, out, err }));
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
  });
}

// Starts a server of ours that prints {"event":"listening",...,"port":P}; {port, stop}.
export async function serve(...words) {
  const child = spawn(everywire, ['serve', '--demo', ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  await within(new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the server left with ${code}`)));
    child.stdout.on('data', (data) => {
      text += data;
      if (text.includes('"ready"')) resolve();
    });
  }));
  const stop = () => within(new Promise((resolve) => {
    child.removeAllListeners('exit');
    child.on('exit', resolve);
    child.kill('SIGTERM');
  }));
  return { port: JSON.parse(text.split('\n')[0]).port, stop };
}
