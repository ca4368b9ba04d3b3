// vscode-jsonrpc (Content-Length framing) on both sides: as client of `everywire serve` over standard input and output and over TCP,
// and as server (vscode_server.mjs) of `everywire call`. Needs EVERYWIRE and EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { check, everywire, finish, load, run, serve, versionOf, within } from './check.mjs';

const rpc = (await load('vscode-jsonrpc/node')).default;
console.log(`# vscode-jsonrpc ${versionOf('vscode-jsonrpc')}, node ${process.version}`);

async function failure(promise) {
  try {
    await promise;
  } catch (err) {
    return err;
  }
  throw new Error('it did not fail');
}

async function asClient(name, reader, writer) {
  const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(reader), new rpc.StreamMessageWriter(writer));
  const problems = [];
  const told = [];
  connection.onError(([err]) => problems.push(String(err)));
  connection.onUnhandledNotification((message) => told.push(message.method));
  connection.listen();
  for (const input of [{ a: { b: [1, 'x', null] } }, { text: 'Zoë 世界 \u{1f600} \n\u2028' }, { big: 'x€'.repeat(250000) }]) {
    await check(`${name}: echo ${JSON.stringify(input).slice(0, 40)}`, async () =>
      assert.deepEqual(await connection.sendRequest('echo', input), input));
  }
  await check(`${name}: echo by position`, async () => assert.deepEqual(await connection.sendRequest('echo', 1, 'two'), [1, 'two']));
  await check(`${name}: no params`, async () => assert.equal(await connection.sendRequest('echo'), null));
  await check(`${name}: an error has code, message and data`, async () => {
    const err = await failure(connection.sendRequest('fail', { status: 'FAILED_PRECONDITION', message: 'told why', details: { k: 1 } }));
    assert.equal(err.message, 'told why');
    assert.equal(err.code, -32000);
    assert.deepEqual(err.data, { status: 'FAILED_PRECONDITION', details: { k: 1 } });
  });
  await check(`${name}: an unknown method`, async () => assert.equal((await failure(connection.sendRequest('nothing', {}))).code, -32601));
  await check(`${name}: cancelled by its token`, async () => {
    const source = new rpc.CancellationTokenSource();
    const ends = failure(connection.sendRequest('sleep', { ms: 60000 }, source.token));
    setTimeout(() => source.cancel(), 100);
    const err = await ends;
    assert.equal(err.data?.status, 'CANCELLED');
  });
  await check(`${name}: 200 cancelled of 400`, async () => {
    const sources = [];
    const results = await Promise.all(Array.from({ length: 400 }, (_, i) => {
      if (i % 2) return connection.sendRequest('sleep', { ms: 20 });
      const source = new rpc.CancellationTokenSource();
      setTimeout(() => source.cancel(), 50);
      sources.push(source);
      return failure(connection.sendRequest('sleep', { ms: 60000 }, source.token));
    }));
    results.forEach((result, i) => (i % 2 ? assert.deepEqual(result, { slept_ms: 20 }) : assert.equal(result.data?.status, 'CANCELLED')));
  });
  await check(`${name}: notifications are never answered`, async () => {
    for (const method of ['echo', 'fail', 'nothing', '$/nothing']) await connection.sendNotification(method, { a: 1 });
    assert.deepEqual(await connection.sendRequest('echo', { after: 1 }), { after: 1 });
  });
  await check(`${name}: 1000 requests at once`, async () => {
    const results = await Promise.all(Array.from({ length: 1000 }, (_, i) => connection.sendRequest('echo', { i })));
    results.forEach((result, i) => assert.deepEqual(result, { i }));
  });
  await check(`${name}: nothing unexpected came`, async () => assert.deepEqual([problems, told], [[], []]));
  connection.end();
  connection.dispose();
}

const child = spawn(everywire, ['serve', '--demo', '--listen', 'jsonrpc=stdio'], { stdio: ['pipe', 'pipe', 'ignore'] });
const left = new Promise((resolve) => child.on('exit', resolve));
await asClient('stdio', child.stdout, child.stdin);
await check('stdio: the server leaves with 0 when its input ends', async () => {
  child.stdin.end();
  assert.equal(await left, 0);
});

const ours = await serve('--listen', 'jsonrpc=127.0.0.1:0');
const socket = connect(ours.port, '127.0.0.1');
await asClient('tcp', socket, socket);
socket.destroy();
await check('tcp: the server leaves with 0', async () => assert.equal(await ours.stop(), 0));

// ---- the other way ----

const peer = [process.execPath, fileURLToPath(new URL('vscode_server.mjs', import.meta.url))];
const theirs = spawn(peer[0], [peer[1], 'tcp'], { stdio: ['ignore', 'pipe', 'pipe'] });
let heard = '';
theirs.stderr.on('data', (data) => (heard += data));
const port = Number(await within(new Promise((resolve) => theirs.stdout.once('data', resolve))));

for (const [name, words, tail] of [['stdio', ['jsonrpc+stdio:?framing=lsp'], ['--', ...peer]], ['tcp', [`jsonrpc://127.0.0.1:${port}?framing=lsp`], []]]) {
  const call = (action, input, ...more) => run(everywire, ['call', ...words, action, input, ...more, ...tail]);
  await check(`call over ${name}: echo`, async () => {
    const input = '{"a":[1,{"b":null}],"t":"Zoë"}';
    const { code, out } = await call('echo', input);
    assert.deepEqual([code, out], [0, `${input}\n`]);
  });
  await check(`call over ${name}: 2 MB`, async () => {
    const input = JSON.stringify({ t: 'x'.repeat(2000000) });
    const { code, out } = await run(everywire, ['call', ...words, 'echo', '-', ...tail], input);
    assert.equal(code, 0);
    assert.ok(out === `${input}\n`);
  });
  await check(`call over ${name}: an error`, async () => {
    const { code, err } = await call('fail', '{}');
    const { error } = JSON.parse(err.split('\n').find((line) => line.startsWith('{"error"')));
    assert.deepEqual([code, error.message], [1, 'told why']);
    assert.match(JSON.stringify(error.details), /"k":1/);
  });
  await check(`call over ${name}: a thrown error`, async () => {
    const { code, err } = await call('throws', '{}');
    assert.equal(code, 1);
    assert.match(err, /thrown/);
  });
  await check(`call over ${name}: an unknown method`, async () => {
    const { code, err } = await call('nothing', '{}');
    assert.equal(code, 1);
    assert.match(err, /NOT_FOUND/);
  });
  await check(`call over ${name}: --stream of a peer without streams`, async () => {
    const { code, out } = await call('echo', '{"a":1}', '--stream');
    assert.deepEqual([code, out], [0, '{"result":{"a":1}}\n']);
  });
  await check(`call over ${name}: a timeout`, async () => assert.equal((await call('sleep', '{"ms":60000}', '--timeout', '300ms')).code, 5));
}
await check('a timeout cancels at the peer', async () => {
  await within((async () => {
    while (!heard.includes('cancelled')) await new Promise((resolve) => setTimeout(resolve, 20));
  })(), 5000);
});
theirs.kill();
finish('vscode-jsonrpc');
