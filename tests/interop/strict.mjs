// Peers that hold strictly to JSON-RPC 2.0, called by `everywire call`: jayson (npm) over TCP, jsonrpcserver (PyPI) over standard input and
// output. Both answer a request that they cannot read with an error whose id is null. Needs EVERYWIRE, EW_INTEROP_CACHE and EW_STRICT_PYTHON.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { check, everywire, finish, run, versionOf, within } from './check.mjs';

console.log(`# jayson ${versionOf('jayson')}, node ${process.version}`);
const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const server = spawn(process.execPath, [file('strict_server.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = Number(await within(new Promise((resolve) => server.stdout.once('data', resolve))));

const peers = [
  ['jayson', `jsonrpc://127.0.0.1:${port}`, []],
  ['jsonrpcserver', 'jsonrpc+stdio:', ['--', process.env.EW_STRICT_PYTHON, file('strict_server.py')]],
];
for (const [name, target, tail] of peers) {
  const call = (words, options = '') => run(everywire, ['call', target + options, ...words, ...tail]);
  const refused = async (words, options) => {
    const { code, out, err } = await call(words, options);
    assert.deepEqual([code, out], [1, ''], err);
    assert.match(err, /\{"error":\{"status":"INVALID_ARGUMENT","message":"Invalid request"/);
    assert.match(err, /the peer reports an error without an id: code -32600, Invalid request/);
  };
  await check(`${name}: without input`, async () => assert.equal((await call(['ping'])).out, '"pong"\n'));
  await check(`${name}: null as input`, async () => assert.equal((await call(['ping', 'null'])).out, '"pong"\n'));
  await check(`${name}: without input, --stream`, async () => assert.equal((await call(['ping', '--stream'])).out, '{"result":"pong"}\n'));
  await check(`${name}: params by name`, async () => assert.equal((await call(['add', '{"a":1,"b":2}'])).out, '3\n'));
  await check(`${name}: a number as input is refused, and the caller learns it`, async () => refused(['add', '5']));
  await check(`${name}: a string as input, --stream`, async () => refused(['add', '"x"', '--stream']));
  await check(`${name}: null params are refused, and the caller learns it`, async () => refused(['ping'], '?params=null'));
  await check(`${name}: an unknown method`, async () => {
    const { code, err } = await call(['nothing']);
    assert.equal(code, 1);
    assert.match(err, /"status":"NOT_FOUND"/);
  });
}
server.kill();
finish('strict');
