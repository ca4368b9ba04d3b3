// Our manager with the real Genkit runtimes: `everywire call|list|describe reflection://... -- APP`, then `everywire serve` with a listener
// for runtimes, whose actions it hands on over http. Needs EVERYWIRE and EW_INTEROP_CACHE.
// Usage: node reflection_manager.mjs js|go|py COMMAND...      the app: reflection_app.mjs, genkit_go/main.go or reflection_app.py
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { check, everywire, finish, within } from './check.mjs';
import { freePort, home, runToEnd, start, until } from './reflection_tools.mjs';

const [kind, ...app] = process.argv.slice(2);
// What the runtimes can and cannot do. most: the largest message that they take (Go 32 KiB, Python 1 MiB).
const peer = {
  js: { name: 'genkit-js', most: 2000000, bidi: true, text: true, nothing: true },
  go: { name: 'genkit-go', most: 20000, bidi: true },
  py: { name: 'genkit-py', most: 500000 },
}[kind];
const UNICODE = 'Zo\u00eb \u4e16\u754c \u{1f600}\u{1f468}\u200d\u{1f469} a"b\\c\n\t\u0001\u2028\u0000 <&>';

const log = path.join(home, 'app.log');
const noted = () => (existsSync(log) ? readFileSync(log, 'utf8') : '');
const forget = () => rmSync(log, { force: true });
const slowPid = () => Number(/slow begins in (\d+)/.exec(noted())?.[1]);
const env = { EW_APP_LOG: log, NO_COLOR: '1' };

const TARGET = 'reflection://127.0.0.1:0';
const ask = (verb, words, input) => runToEnd(everywire, [verb, TARGET, ...words, '--', ...app], { env, input: input ?? '' });
const call = (action, value, ...more) => ask('call', [action, '-', ...more], JSON.stringify(value));
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const errorOf = (ran) => {
  const line = ran.err.split('\n').find((text) => text.startsWith('{"error"'));
  assert.ok(line, `no error in: ${ran.all}`);
  return JSON.parse(line).error;
};
async function result(action, value, ...more) {
  const ran = await call(action, value, ...more);
  assert.equal(ran.code, 0, ran.all);
  return JSON.parse(ran.out);
}

// ---- one call, one app ----

await check('list', async () => {
  const ran = await ask('list', []);
  assert.equal(ran.code, 0, ran.all);
  const actions = JSON.parse(ran.out);
  for (const name of ['hello', 'echo', 'big', 'who', 'failing', 'streamy', 'slow'])
    assert.equal(actions[`/flow/${name}`]?.name, name, Object.keys(actions).join(' '));
  if (peer.bidi) assert.equal(actions['/custom/sum'].metadata.bidi, true);
});
await check('describe', async () => {
  const ran = await ask('describe', ['/flow/hello']);
  assert.equal(ran.code, 0, ran.all);
  const descriptor = JSON.parse(ran.out);
  assert.deepEqual([descriptor.key, descriptor.name, descriptor.inputSchema.type], ['/flow/hello', 'hello', 'string']);
});
await check('call', async () => assert.equal(await result('/flow/hello', 'Ada'), 'Hello, Ada!'));
await check('call by name', async () => assert.equal(await result('hello', 'Ada'), 'Hello, Ada!'));
await check('unicode', async () => assert.deepEqual(await result('/flow/echo', { t: UNICODE }), { t: UNICODE }));
await check(`${peer.most} bytes there and back`, async () => {
  const text = 'x'.repeat(peer.most - 1000);
  assert.ok((await result('/flow/echo', text)) === text);
});
await check('a result of 2 MB', async () => assert.equal((await result('/flow/big', 2000000)).length, 2000000));
if (peer.nothing) await check('a flow that returns nothing', async () => assert.equal(await result('/flow/nothing', 1), null));
await check('call --stream: all chunks in order, then the result', async () => {
  const ran = await call('/flow/streamy', 250, '--stream');
  assert.equal(ran.code, 0, ran.all);
  const all = lines(ran.out);
  assert.deepEqual(all.slice(0, 250), Array.from({ length: 250 }, (_, i) => ({ chunk: peer.text ? { i, text: `Zo\u00eb \u{1f600} ${i}` } : { i } })));
  assert.deepEqual(all.slice(250), [{ result: 'done 250' }]);
});
await check('call without --stream: the result only', async () => assert.equal(await result('/flow/streamy', 5), 'done 5'));
await check('a failing flow: status, message, exit code', async () => {
  const ran = await call('/flow/failing', null);
  const error = errorOf(ran);
  assert.deepEqual([ran.code, error.status], [1, 'FAILED_PRECONDITION']);
  assert.match(error.message, /told why$/);
});
await check('an input that does not fit its schema', async () => {
  const ran = await call('/flow/hello', 5);
  assert.equal(ran.code, 1, ran.all);
  assert.ok(errorOf(ran).status, ran.all);
});
await check('an unknown action', async () => {
  const ran = await call('/flow/helo', 1);
  assert.deepEqual([ran.code, errorOf(ran).status], [1, 'NOT_FOUND'], ran.all);
}, 40000);
await check('context arrives', async () => {
  assert.deepEqual((await result('/flow/who', null, '--context', '{"auth":{"uid":"u7"}}')).context, { auth: { uid: 'u7' } });
});
await check('labels arrive: the runtime puts them on its spans', async () => {
  let posts = '';
  const collector = createServer((request, response) => {
    request.on('data', (data) => (posts += data));
    request.on('end', () => response.end('OK'));
  });
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
  try {
    // long enough for the span of its begin: the app is ended with the call, whatever it still has to send
    assert.equal(await result('/flow/slow', 800, '--label', 'my:label=v', '--telemetry', `http://127.0.0.1:${collector.address().port}`), 'slept');
    await until('the label on a span', () => /"my:label": ?"v"/.test(posts), 5000);
  } finally {
    collector.close();
    collector.closeAllConnections();
  }
});
if (peer.bidi) {
  await check('an input stream', async () => {
    const ran = await ask('call', ['/custom/sum', '--input-stream', '--stream'], '1\n2\n39\n');
    assert.equal(ran.code, 0, ran.all);
    assert.deepEqual(lines(ran.out), [{ chunk: 1 }, { chunk: 3 }, { chunk: 42 }, { result: 42 }]);
  });
  await check('an input stream of 2000 chunks', async () => {
    const ran = await ask('call', ['/custom/sum', '--input-stream'], '1\n'.repeat(2000));
    assert.deepEqual([ran.code, ran.out], [0, '2000\n'], ran.err);
  });
}
await check('an interrupt cancels: exit code 130, and the flow is told', async () => {
  forget();
  const ran = start(everywire, ['call', TARGET, '/flow/slow', '60000', '--', ...app], { env });
  await until('the flow', slowPid);
  process.kill(ran.child.pid, 'SIGINT');
  assert.equal((await within(ran.ended)).code, 130, ran.all);
  assert.match(noted(), /cancelled/);
  await ran.kill();
});
await check('a runtime that is killed in mid-call: exit code 3', async () => {
  forget();
  const ran = start(everywire, ['call', TARGET, '/flow/slow', '60000', '--', ...app], { env });
  process.kill(await until('the flow', slowPid), 'SIGKILL');
  assert.equal((await within(ran.ended, 8000)).code, 3, ran.all);
  assert.equal(errorOf(ran).status, 'UNAVAILABLE');
  await ran.kill();
});
if (kind === 'go') {
  await check('a message larger than the runtime takes is refused, and the runtime stays', async () => {
    const ran = await call('/flow/echo', 'x'.repeat(100000));
    assert.ok([1, 2].includes(ran.code), ran.all);
    assert.equal(errorOf(ran).status, 'RESOURCE_EXHAUSTED');
  });
}

// ---- a manager that stays, apps that come and go ----

const port = await freePort();
let ours, http;
async function manage() {
  ours = start(everywire, ['serve', '--listen', `reflection=127.0.0.1:${port}`, '--listen', 'http=127.0.0.1:0'], { env });
  await ours.said('"ready"');
  http = `http://127.0.0.1:${lines(ours.out).find((line) => line.wire === 'http').port}`;
}
const runtime = (id) => start(app[0], app.slice(1), {
  env: { ...env, GENKIT_ENV: 'dev', GENKIT_REFLECTION_V2_SERVER: `ws://127.0.0.1:${port}`, GENKIT_RUNTIME_ID: id, EW_APP_NAME: id },
});
const post = async (action, data, options = {}) => {
  const headers = { 'content-type': 'application/json', ...options.headers };
  const response = await fetch(`${http}/${action}`, { method: 'POST', headers, body: JSON.stringify({ data }), signal: options.signal });
  return { status: response.status, text: await response.text() };
};
const actions = async () => (await fetch(`${http}/api/actions`)).json();
const listed = async () => Object.keys(await actions());
const works = async () => (await post('flow/hello', 'Ada')).text.includes('Hello, Ada!');

await manage();
const one = runtime('one');
await check('serve: what a runtime offers is served', async () => {
  await until('its flows', async () => (await listed()).includes('/flow/streamy'));
  assert.deepEqual(JSON.parse((await post('flow/hello', 'Ada')).text), { result: 'Hello, Ada!' });
});
await check('serve: streamed over http', async () => {
  const { text } = await post('flow/streamy?stream=true', 20);
  const blocks = text.split('\n\n').filter(Boolean).map((block) => JSON.parse(block.slice(6)));
  assert.deepEqual(blocks.slice(0, 20).map((block) => block.message.i), Array.from({ length: 20 }, (_, i) => i));
  assert.deepEqual(blocks.slice(20), [{ result: 'done 20' }]);
});
await check('serve: a fault keeps its status', async () => {
  const { status, text } = await post('flow/failing', null);
  assert.deepEqual([status, JSON.parse(text).status], [400, 'FAILED_PRECONDITION']);
});
await check('serve: 100 at once', async () => {
  const all = await Promise.all(Array.from({ length: 100 }, (_, i) => post('flow/echo', { i })));
  all.forEach(({ text }, i) => assert.deepEqual(JSON.parse(text), { result: { i } }));
});
await check('serve: a deadline cancels', async () => {
  forget();
  const { status } = await post('flow/slow', 60000, { headers: { 'x-everywire-timeout-ms': '400' } });
  assert.equal(status, 504);
  await until('the flow to be cancelled', () => noted().includes('cancelled'));
});
await check('serve: a client that goes away cancels', async () => {
  forget();
  const controller = new AbortController();
  const asked = post('flow/slow', 60000, { signal: controller.signal }).catch(() => {});
  await until('the flow', slowPid);
  controller.abort();
  await asked;
  await until('the flow to be cancelled', () => noted().includes('cancelled'));
});
await check('serve: the manager is killed and comes back: the runtime registers again', async () => {
  await ours.kill();
  await manage();
  await until('the runtime', works, 20000);
}, 40000);
const two = runtime('two');
await check('serve: two runtimes with the same flows: by RUNTIME:KEY', async () => {
  await until('both', async () => (await listed()).includes('two:/flow/hello'));
  const keys = await listed();
  assert.ok(keys.includes('one:/flow/hello') && !keys.includes('/flow/hello'), keys.join(' '));
  for (const id of ['one', 'two']) {
    const ran = await runToEnd(everywire, ['call', http, `${id}:/flow/hello`, JSON.stringify(id)], { env });
    assert.deepEqual([ran.code, ran.out], [0, `"Hello, ${id}!"\n`], ran.all);
    if (kind !== 'js') continue;
    assert.equal(JSON.parse((await runToEnd(everywire, ['call', http, `${id}:/flow/who`, 'null'], { env })).out).app, id);
  }
});
await check('serve: without the runtime it is ambiguous, and both are named', async () => {
  const ran = await runToEnd(everywire, ['call', http, '/flow/hello', '"x"'], { env });
  assert.equal(ran.code, 1, ran.all);
  assert.match(errorOf(ran).message, /one:\/flow\/hello[^]*two:\/flow\/hello|two:\/flow\/hello[^]*one:\/flow\/hello/);
});
await check('serve: one of two goes: its call ends at once, the key is the other one\'s', async () => {
  forget();
  const asked = post('two:/flow/slow', 60000);
  process.kill(await until('the flow', slowPid), 'SIGKILL');
  const { status, text } = await within(asked, 8000);
  assert.deepEqual([status, JSON.parse(text).status], [503, 'UNAVAILABLE']);
  await until('the other one', works);
});
await check('serve: the last one goes: its actions are away, and calls fail with UNAVAILABLE', async () => {
  await one.kill();
  await until('away', async () => (await actions())['/flow/hello'].everywireAway);
  const { status, text } = await within(post('flow/hello', 'Ada'), 30000);
  assert.deepEqual([status, JSON.parse(text).status], [503, 'UNAVAILABLE']);
}, 60000);
let again;
await check('serve: it comes back within the grace time: a call that waits for it is answered', async () => {
  again = runtime('one');
  await until('the answer', works, 60000);
}, 70000);
await check('serve: it leaves with 0', async () => {
  process.kill(ours.child.pid, 'SIGTERM');
  assert.equal((await within(ours.ended)).code, 0, ours.all);
});
await two.kill();
await again?.kill();
finish(`reflection ${peer.name}`);
