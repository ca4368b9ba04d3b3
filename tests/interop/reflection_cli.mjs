// The genkit command (genkit-cli) as the manager of our runtime: `flow:run`, `genkit start` with its HTTP API and its telemetry server,
// against `everywire serve --demo` and examples/serve. Needs EVERYWIRE, EW_EXAMPLES and EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { check, everywire, finish, versionOf, within } from './check.mjs';
import { freePort, genkit, genkitStart, home, pause, start, until } from './reflection_tools.mjs';

console.log(`# genkit-cli ${versionOf('genkit-cli')}, node ${process.version}`);
const SLOW_MS = 60000; // a genkit command takes two seconds on an idle machine
const demo = [everywire, 'serve', '--demo'];
const greeter = [path.join(process.env.EW_EXAMPLES, 'serve')];
const NUMBERS = {
  CANCELLED: 1, UNKNOWN: 2, INVALID_ARGUMENT: 3, DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6, PERMISSION_DENIED: 7, RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9, ABORTED: 10, OUT_OF_RANGE: 11, UNIMPLEMENTED: 12, INTERNAL: 13, UNAVAILABLE: 14, DATA_LOSS: 15, UNAUTHENTICATED: 16,
};
const UNICODE = 'Zo\u00eb \u4e16\u754c \u{1f600}\u{1f468}\u200d\u{1f469} a"b\\c\n\t\u0001\u2028\u0000';

// ---- flow:run: the command starts us, runs one flow, ends us ----

const runFlow = (words, command = demo) => genkit(['flow:run', ...words, '--', ...command]);
const resultOf = (ran) => /Result:\n([^]*?)\n(?:Trace ID:|$)/.exec(ran.all)?.[1];
const traceOf = (ran) => /Trace ID:\s+([0-9a-f]{32})/.exec(ran.all)?.[1];
const seen = {};

await check('flow:run', async () => {
  const ran = await runFlow(['greet', '{"name":"Ada"}']);
  assert.equal(resultOf(ran), 'Hello, Ada!', ran.all);
  assert.ok((seen.greet = traceOf(ran)), ran.all);
}, SLOW_MS);
await check('flow:run without input', async () => {
  const ran = await runFlow(['echo']);
  assert.equal(resultOf(ran), 'null', ran.all);
}, SLOW_MS);
await check('flow:run -s', async () => {
  const ran = await runFlow(['-s', 'count', '{"n":3}']);
  assert.match(ran.all, /\{\n {2}"i": 1\n\}\n\{\n {2}"i": 2\n\}\n\{\n {2}"i": 3\n\}\nResult:\n\{\n {2}"count": 3\n\}\n/);
}, SLOW_MS);
await check('flow:run -c', async () => {
  const ran = await runFlow(['context', '1', '-c', '{"auth":{"uid":"u7"}}']);
  const result = JSON.parse(resultOf(ran));
  assert.deepEqual([result.wire, result.key, result.context], ['reflection', '/flow/context', { auth: { uid: 'u7' } }]);
  assert.equal(result.trace_id, traceOf(ran));
}, SLOW_MS);
await check('flow:run of a failing flow shows its status and message', async () => {
  const ran = await runFlow(['fail', '{"status":"FAILED_PRECONDITION","message":"told why"}']);
  assert.match(ran.all, /Code: 9\n/);
  assert.match(ran.all, /Message: .*told why\n/);
  assert.ok((seen.fail = traceOf(ran)), ran.all);
}, SLOW_MS);
await check('flow:run of a missing flow shows its status and message', async () => {
  const ran = await runFlow(['missing', '1']);
  assert.match(ran.all, /Code: 5\n/);
  assert.match(ran.all, /Message: .*\/flow\/missing/);
}, SLOW_MS);
await check('flow:run of a C program', async () => {
  const ran = await runFlow(['-s', 'greet', '{"name":"Ada"}'], greeter);
  assert.match(ran.all, /\{\n {2}"text": "Ada"\n\}\nResult:\n\{\n {2}"greeted": "Ada"\n\}\n/);
}, SLOW_MS);
await check('trace:list shows what flow:run ran', async () => {
  const { all } = await genkit(['trace:list', '-l', '20']);
  const found = new Map(all.split('---').map((text) => [/ID: +(\w+)/.exec(text)?.[1], text]));
  const greet = found.get(seen.greet);
  assert.ok(greet, `no ${seen.greet} in ${all}`);
  assert.match(greet, /Name: +greet\n/);
  assert.match(greet, /Type: +flow\n/);
  assert.match(greet, /Status: +success\n/);
  assert.match(greet, /Input: +\{"name":"Ada"\}/);
  assert.match(greet, /Output: +"Hello, Ada!"/);
  assert.match(found.get(seen.fail) ?? '', /Name: +fail\n[^]*Status: +error\n/);
}, SLOW_MS);
await check('trace:get draws it', async () => {
  const { all } = await genkit(['trace:get', seen.greet]);
  assert.match(all, /greet \(flow\) \[.*\] \u2714/);
}, SLOW_MS);

// ---- genkit start with us as its child ----

const body = async (response) => {
  const text = await response.text();
  return { trace: response.headers.get('x-genkit-trace-id'), value: text ? JSON.parse(text) : undefined };
};
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
let cli = await genkitStart(await freePort(), demo);
const run = async (key, input, more) => body(await cli.post('runAction', { key, input, ...more }));
const stream = async (key, input, more) => lines(await (await cli.post('streamAction', { key, input, ...more })).text());
const spanOf = async (traceId, ready = (span) => span.endTime > 0) =>
  until(`the span of ${traceId}`, async () => Object.values((await cli.query('getTrace', { traceId })).spans).find(ready));

await check('start: the runtime registers', async () => {
  const runtime = await until('the runtime', async () => {
    const now = await cli.query('getCurrentRuntime');
    return now.id && now;
  });
  assert.match(runtime.genkitVersion, /^everywire\//);
  assert.ok(runtime.id && runtime.name && runtime.pid > 1, JSON.stringify(runtime));
});
await check('listActions', async () => {
  const actions = await cli.query('listActions');
  for (const name of ['echo', 'greet', 'count', 'sleep', 'fail', 'stream', 'sum', 'context', 'big'])
    assert.equal(actions[`/flow/${name}`]?.name, name);
  assert.equal(actions['/tool/sha256'].name, 'sha256');
  assert.equal(actions['/flow/sum'].metadata.bidi, true); // the Dev UI offers an input stream
});
await check('listValues', async () => {
  assert.deepEqual(await cli.query('listValues', { type: 'defaultModel' }), {});
  await assert.rejects(cli.query('listValues', { type: 'odd' }));
});
await check('runAction', async () => {
  const ran = await run('/flow/greet', { name: 'Ada' });
  assert.equal(ran.value.result, 'Hello, Ada!');
  assert.equal(ran.value.telemetry.traceId, ran.trace);
});
for (const input of [null, 0, -1.5, '', UNICODE, [], {}, { a: [1, { b: null }] }]) {
  await check(`runAction echo ${JSON.stringify(input).slice(0, 30)}`, async () =>
    assert.deepEqual((await run('/flow/echo', input)).value.result, input));
}
await check('runAction 1 MB both ways', async () => {
  const text = 'x\u20ac'.repeat(250000);
  assert.ok((await run('/flow/echo', text)).value.result === text);
});
await check('runAction on a worker thread', async () => {
  assert.equal((await run('/tool/sha256', 1)).value.result, '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b');
});
await check('runAction with context and labels', async () => {
  const { value, trace } = await run('/flow/context', null, { context: { auth: { uid: 'u7' } }, telemetryLabels: { 'my:label': 'v' } });
  assert.deepEqual([value.result.context, value.result.labels, value.result.trace_id], [{ auth: { uid: 'u7' } }, { 'my:label': 'v' }, trace]);
});
for (const [status, code] of Object.entries(NUMBERS)) {
  await check(`runAction fails with ${status}`, async () => {
    const { value } = await run('/flow/fail', { status, message: 'told why', details: { k: 1 } });
    assert.equal(value.error.code, code, JSON.stringify(value));
    assert.match(value.error.message, /told why/);
  });
}
await check('runAction of an unknown action', async () => {
  const { value } = await run('/flow/missing', 1);
  assert.equal(value.error?.code ?? value.code, 5, JSON.stringify(value));
});
await check('streamAction', async () => {
  const [one, two, end] = await stream('/flow/greet', { name: UNICODE });
  assert.equal(one + two, `Hello, ${UNICODE}!`);
  assert.equal(end.result, `Hello, ${UNICODE}!`);
});
await check('streamAction of 1000 chunks, in order', async () => {
  const all = await stream('/flow/stream', { n: 1000 });
  assert.equal(all.length, 1001);
  all.slice(0, 1000).forEach((chunk, i) => assert.deepEqual(chunk, { index: i, text: `chunk number ${i}` }));
  assert.deepEqual(all[1000].result, { n: 1000 });
});
await check('streamAction that fails', async () => {
  const [end] = await stream('/flow/fail', { status: 'ABORTED', message: 'told why' });
  assert.equal(end.error.code, 10);
});
await check('60 at once, some streaming, some failing', async () => {
  const all = await Promise.all(Array.from({ length: 60 }, (_, i) =>
    i % 3 === 0 ? run('/flow/echo', { i }) : i % 3 === 1 ? stream('/flow/count', { n: i, delay_ms: 1 }) : run('/flow/fail', { message: `m${i}` })));
  all.forEach((it, i) => {
    if (i % 3 === 0) assert.deepEqual(it.value.result, { i });
    else if (i % 3 === 1) assert.deepEqual([it.length, it.at(-1).result], [i + 1, { count: i }]);
    else assert.match(it.value.error.message, new RegExp(`m${i}\\b`));
  });
});
await check('cancelAction', async () => {
  const response = await cli.post('runAction', { key: '/flow/sleep', input: { ms: 60000 } });
  const traceId = response.headers.get('x-genkit-trace-id');
  assert.deepEqual(await cli.mutate('cancelAction', { traceId }), { message: 'Action cancelled' });
  assert.equal((await body(response)).value.error.code, 1);
  await assert.rejects(cli.mutate('cancelAction', { traceId }), 'twice');
});
await check('cancelAction of an unknown trace', async () => {
  await assert.rejects(cli.mutate('cancelAction', { traceId: '0123456789abcdef0123456789abcdef' }), /not found|completed/i);
});
await check('an input stream', async () => {
  const response = await cli.post('streamAction?bidi=true', { key: '/flow/sum' });
  const traceId = response.headers.get('x-genkit-trace-id');
  for (const chunk of [1, 2, 39]) assert.equal(await (await cli.post('sendBidiInput', { traceId, chunk })).text(), 'OK');
  assert.equal(await (await cli.post('endBidiInput', { traceId })).text(), 'OK');
  const all = lines(await response.text());
  assert.deepEqual([all.slice(0, 3), all[3].result], [[1, 3, 42], 42]);
});

// ---- traces ----

await check('getTrace: name, state, input, output, label', async () => {
  const { trace } = await run('/flow/greet', { name: 'Zo\u00eb' }, { telemetryLabels: { 'my:label': 'v' } });
  const span = await spanOf(trace);
  const a = span.attributes;
  assert.equal(span.displayName, 'greet');
  const expected = {
    'genkit:type': 'action', 'genkit:metadata:subtype': 'flow', 'genkit:key': '/flow/greet', 'genkit:name': 'greet',
    'genkit:path': '/{greet,t:flow}', 'genkit:isRoot': true, 'genkit:state': 'success', 'my:label': 'v',
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(a[name], value, name);
  assert.deepEqual([JSON.parse(a['genkit:input']), JSON.parse(a['genkit:output'])], [{ name: 'Zo\u00eb' }, 'Hello, Zo\u00eb!']);
  assert.ok(span.endTime >= span.startTime && Math.abs(Date.now() - span.startTime) < 60000);
});
await check('getTrace of a failure', async () => {
  const { trace } = await run('/flow/fail', { status: 'ABORTED', message: 'told why' });
  const span = await spanOf(trace);
  assert.deepEqual([span.attributes['genkit:state'], span.status.code], ['error', 2]);
  assert.match(span.status.message, /told why/);
});
await check('a span is there while its call runs', async () => {
  const response = await cli.post('runAction', { key: '/flow/sleep', input: { ms: 60000 } });
  const traceId = response.headers.get('x-genkit-trace-id');
  const begun = await spanOf(traceId, () => true);
  assert.deepEqual([begun.endTime, begun.displayName], [0, 'sleep']);
  await cli.mutate('cancelAction', { traceId });
  await response.text();
  assert.equal((await spanOf(traceId)).attributes['genkit:state'], 'error');
});
await check('streamTrace tells of begin and end, in order', async () => {
  const response = await cli.post('runAction', { key: '/flow/sleep', input: { ms: 500 } });
  const told = await cli.post('streamTrace', { traceId: response.headers.get('x-genkit-trace-id') });
  let text = '';
  for await (const piece of told.body) {
    text += Buffer.from(piece);
    if (text.includes('span_end')) break;
  }
  const [first, ...events] = lines(text);
  assert.ok(first.spans || first.type === 'span_start', text);
  assert.equal(events.at(-1)?.type ?? first.type, 'span_end');
  await response.text();
});
await check('listTraces', async () => {
  const { traces } = await cli.query('listTraces', { limit: 5 });
  assert.equal(traces.length, 5);
  assert.equal(Object.values(traces[0].spans)[0].displayName, 'sleep');
});

await check('restartAppProcess: another process, and it works', async () => {
  const { pid } = await cli.query('getCurrentRuntime');
  await cli.query('restartAppProcess');
  await until('another runtime', async () => {
    const now = await cli.query('getCurrentRuntime');
    return now.pid && now.pid !== pid;
  });
  assert.equal((await run('/flow/greet', 'again')).value.result, 'Hello, again!');
  await until('the first process to be gone', () => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
}, SLOW_MS);
await check('killAppProcess: nobody is left', async () => {
  const { pid } = await cli.query('getCurrentRuntime');
  await cli.query('killAppProcess').catch(() => {});
  await until('the runtime to be gone', () => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
}, SLOW_MS);
await cli.kill();

// ---- genkit start alone: either side goes and comes back ----

const port = await freePort();
const file = path.join(home, 'variables');
async function manager() {
  cli = await genkitStart(port, [], ['--write-env-file', file]);
  return Object.fromEntries(readFileSync(file, 'utf8').split('\n').map((line) => line.split(/=(.*)/s).slice(0, 2)));
}
const env = await manager();
const runtimes = async () => (await cli.query('getActiveRuntimes')).length;
const runtime = () => start(demo[0], [...demo.slice(1), '--listen', 'http=127.0.0.1:0'], { env });
let ours = runtime();
const inFlight = async () => {
  const at = JSON.parse(ours.out.split('\n').find((line) => line.includes('"listening"'))).port;
  const metrics = await (await fetch(`http://127.0.0.1:${at}/metrics`)).text();
  const lines = metrics.split('\n').filter((line) => line.startsWith('everywire_calls_in_flight'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').pop()), 0);
};

await check('a runtime that is killed is seen to go', async () => {
  await until('the runtime', async () => (await runtimes()) === 1);
  await ours.kill();
  await until('none', async () => (await runtimes()) === 0);
});
await check('it comes back and works', async () => {
  ours = runtime();
  await until('the runtime', async () => (await runtimes()) === 1);
  assert.equal((await run('/flow/greet', 'again')).value.result, 'Hello, again!');
});
await check('the manager dies in mid-call: the call is cancelled', async () => {
  const response = await cli.post('runAction', { key: '/flow/sleep', input: { ms: 600000 } });
  response.text().catch(() => {});
  assert.equal(await inFlight(), 1);
  await cli.kill();
  await until('no call', async () => (await inFlight()) === 0);
});
await check('the manager comes back on its port: we register again', async () => {
  for (let i = 0; ; i++) {
    const now = await manager();
    if (now.GENKIT_REFLECTION_V2_SERVER === env.GENKIT_REFLECTION_V2_SERVER) break;
    await cli.kill(); // somebody else's program was on that port for a moment
    assert.ok(i < 3, `the port ${env.GENKIT_REFLECTION_V2_SERVER} is taken`);
    await pause(1000);
  }
  await until('the runtime', async () => (await runtimes()) === 1);
  assert.equal((await run('/flow/greet', 'back')).value.result, 'Hello, back!');
  assert.equal(ours.code, null);
}, SLOW_MS);
await check('SIGTERM: we leave with 0 and are seen to go', async () => {
  process.kill(ours.child.pid, 'SIGTERM');
  assert.equal((await within(ours.ended)).code, 0);
  await until('none', async () => (await runtimes()) === 0);
});
await cli.kill();
finish('reflection genkit-cli');
