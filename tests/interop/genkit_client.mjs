// Genkit's own JavaScript client (runFlow and streamFlow of genkit/beta/client) against a running `everywire serve --demo`.
// Usage: node genkit_client.mjs BASE_URL NODE_MODULES_PARENT
// Prints one "ok N - name" or "not ok N - name" line per check and a summary; the exit code is 0 only when all passed.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [base, home] = process.argv.slice(2);
if (!base || !home) {
  console.error('usage: genkit_client.mjs BASE_URL NODE_MODULES_PARENT');
  process.exit(2);
}
const require = createRequire(path.join(path.resolve(home), 'package.json'));
const { runFlow, streamFlow } = await import(pathToFileURL(require.resolve('genkit/beta/client')));
const { version } = JSON.parse(readFileSync(path.join(path.resolve(home), 'node_modules', 'genkit', 'package.json'), 'utf8'));
console.log(`# genkit ${version}, node ${process.version}`);

// A failing stream rejects twice in this client, once where nobody can catch it; what else turns up here is a failure of the test.
const stray = [];
process.on('unhandledRejection', (err) => stray.push(String(err?.message ?? err)));

let number = 0;
let failed = 0;

async function check(name, body) {
  number += 1;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no end within 20 s')), 20000);
  });
  try {
    await Promise.race([body(), late]);
    console.log(`ok ${number} - ${name}`);
  } catch (err) {
    failed += 1;
    console.log(`not ok ${number} - ${name}`);
    console.log(`# ${String(err?.stack ?? err).replaceAll('\n', '\n# ')}`);
  } finally {
    clearTimeout(timer);
  }
}

const url = (name) => `${base}/${name}`;

async function collect(options) {
  const response = streamFlow(options);
  const chunks = [];
  for await (const chunk of response.stream) chunks.push(chunk);
  return { chunks, output: await response.output };
}

async function thrown(body) {
  try {
    await body();
  } catch (err) {
    return String(err?.message ?? err);
  }
  throw new Error('it did not fail');
}

const STATUSES = {
  CANCELLED: 499, UNKNOWN: 500, INVALID_ARGUMENT: 400, DEADLINE_EXCEEDED: 504, NOT_FOUND: 404, ALREADY_EXISTS: 409, PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429, FAILED_PRECONDITION: 400, ABORTED: 409, OUT_OF_RANGE: 400, UNIMPLEMENTED: 501, INTERNAL: 500, UNAVAILABLE: 503,
  DATA_LOSS: 500, UNAUTHENTICATED: 401,
};
const UNICODE = ['Zoë', '世界', 'мир', '\u{1f600}\u{1f468}\u200d\u{1f469}', 'a"b\\c\n\n\t\u0001', '\u2028\u2029', 'data: {"result":1}\n\n', '\u0000'];

// unary

await check('runFlow greet', async () => assert.equal(await runFlow({ url: url('greet'), input: { name: 'Ada' } }), 'Hello, Ada!'));
await check('runFlow greet by key', async () => assert.equal(await runFlow({ url: url('flow/greet'), input: 'Ada' }), 'Hello, Ada!'));
for (const input of [null, true, 0, -1.5, 'text', '', [], [1, [2]], {}, { a: { b: [1, 'x', null] } }]) {
  await check(`runFlow echo ${JSON.stringify(input)}`, async () => assert.deepEqual(await runFlow({ url: url('echo'), input }), input));
}
await check('runFlow with undefined input', async () => assert.equal(await runFlow({ url: url('echo') }), null));
await check('runFlow unicode', async () => {
  for (const text of UNICODE) assert.equal(await runFlow({ url: url('echo'), input: text }), text);
});
await check('runFlow 1 MB', async () => {
  const text = 'x€'.repeat(250000);
  assert.equal(await runFlow({ url: url('echo'), input: text }), text);
});
await check('runFlow with init and headers', async () => {
  assert.equal(await runFlow({ url: url('echo'), input: 1, init: { a: 1 }, headers: { 'x-own': 'y' } }), 1);
});
await check('runFlow on a worker thread', async () => {
  assert.equal(await runFlow({ url: url('sha256'), input: 1 }), '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b');
});
for (const [status, code] of Object.entries(STATUSES)) {
  await check(`runFlow fails with ${status}`, async () => {
    const text = await thrown(() => runFlow({ url: url('fail'), input: { status, message: 'told why', details: { k: 1 } } }));
    assert.match(text, new RegExp(`^Server returned: ${code}: `));
    const body = JSON.parse(text.slice(text.indexOf('{')));
    assert.deepEqual(body, { code, status, message: 'told why', details: { k: 1 } });
  });
}
await check('runFlow of an unknown flow', async () => {
  assert.match(await thrown(() => runFlow({ url: url('nothing'), input: 1 })), /404.*NOT_FOUND/);
});
await check('runFlow aborted', async () => {
  const begin = Date.now();
  const text = await thrown(() => runFlow({ url: url('sleep'), input: { ms: 30000 }, abortSignal: AbortSignal.timeout(200) }));
  assert.match(text, /abort/i);
  assert.ok(Date.now() - begin < 5000);
});

// streaming

await check('streamFlow greet', async () => {
  assert.deepEqual(await collect({ url: url('greet'), input: { name: 'Ada' } }), { chunks: ['Hello,', ' Ada!'], output: 'Hello, Ada!' });
});
await check('streamFlow count', async () => {
  const { chunks, output } = await collect({ url: url('count'), input: { n: 25 } });
  assert.deepEqual(chunks, Array.from({ length: 25 }, (_, i) => ({ i: i + 1 })));
  assert.deepEqual(output, { count: 25 });
});
await check('streamFlow count, chunk by chunk', async () => {
  const times = [];
  const response = streamFlow({ url: url('count'), input: { n: 6, delay_ms: 100 } });
  for await (const chunk of response.stream) times.push([chunk.i, Date.now()]);
  assert.deepEqual(times.map(([i]) => i), [1, 2, 3, 4, 5, 6]);
  assert.ok(times[5][1] - times[0][1] >= 350, 'they came all at once');
  assert.deepEqual(await response.output, { count: 6 });
});
await check('streamFlow of 5000 chunks', async () => {
  const { chunks, output } = await collect({ url: url('stream'), input: { n: 5000 } });
  assert.equal(chunks.length, 5000);
  chunks.forEach((chunk, i) => assert.deepEqual(chunk, { index: i, text: `chunk number ${i}` }));
  assert.deepEqual(output, { n: 5000 });
});
await check('streamFlow without chunks', async () => {
  assert.deepEqual(await collect({ url: url('echo'), input: [1] }), { chunks: [], output: [1] });
});
await check('streamFlow with undefined input and a null result', async () => {
  assert.deepEqual(await collect({ url: url('echo') }), { chunks: [], output: null });
});
await check('streamFlow unicode', async () => {
  for (const text of UNICODE) {
    const { chunks, output } = await collect({ url: url('greet'), input: { name: text } });
    assert.equal(output, `Hello, ${text}!`);
    assert.equal(chunks.join(''), output);
  }
});
await check('streamFlow of a large unicode result', async () => {
  // this client decodes every network read for itself: only ASCII on the wire keeps characters whole
  const text = '€\u{1f600}'.repeat(100000);
  assert.equal((await collect({ url: url('echo'), input: text })).output, text);
});
await check('streamFlow without a stream id', async () => {
  const response = streamFlow({ url: url('greet'), input: 'x' });
  assert.equal(await response.streamId, null);
  assert.equal(await response.output, 'Hello, x!');
});
for (const status of Object.keys(STATUSES)) {
  await check(`streamFlow fails with ${status}`, async () => {
    const text = await thrown(() => collect({ url: url('fail'), input: { status, message: 'told why' } }));
    assert.ok(text.startsWith(`${status}: told why`), text);
  });
}
await check('streamFlow of an unknown flow', async () => {
  assert.match(await thrown(() => collect({ url: url('nothing'), input: 1 })), /Server returned: 404/);
});
await check('streamFlow aborted', async () => {
  const controller = new AbortController();
  const response = streamFlow({ url: url('count'), input: { n: 100000, delay_ms: 20 }, abortSignal: controller.signal });
  const text = await thrown(async () => {
    let seen = 0;
    for await (const _ of response.stream) if (++seen === 3) controller.abort();
    await response.output;
  });
  assert.match(text, /abort/i);
});

// many at once

await check('100 runFlow in parallel', async () => {
  const results = await Promise.all(Array.from({ length: 100 }, (_, i) => runFlow({ url: url('echo'), input: { i } })));
  results.forEach((result, i) => assert.deepEqual(result, { i }));
});
await check('100 streamFlow in parallel', async () => {
  const results = await Promise.all(Array.from({ length: 100 }, (_, i) => collect({ url: url('greet'), input: `n${i}` })));
  results.forEach(({ chunks, output }, i) => {
    assert.equal(output, `Hello, n${i}!`);
    assert.equal(chunks.join(''), output);
  });
});
await check('100 mixed in parallel, some failing', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, (_, i) =>
      i % 4 === 0 ? runFlow({ url: url('fail'), input: { status: 'ABORTED' } })
        : i % 4 === 1 ? collect({ url: url('count'), input: { n: i, delay_ms: 1 } })
          : i % 4 === 2 ? runFlow({ url: url('sleep'), input: { ms: i } })
            : collect({ url: url('fail'), input: { status: 'NOT_FOUND', message: `m${i}` } })),
  );
  results.forEach((r, i) => {
    assert.equal(r.status, i % 4 === 0 || i % 4 === 3 ? 'rejected' : 'fulfilled', `${i}: ${r.reason}`);
    if (i % 4 === 1) assert.equal(r.value.chunks.length, i);
    if (i % 4 === 3) assert.match(r.reason.message, new RegExp(`NOT_FOUND: m${i}`));
  });
});
await check('no calls are left over', async () => {
  const end = Date.now() + 5000;
  for (;;) {
    const text = await (await fetch(`${base}/metrics`)).text();
    const left = text.split('\n').filter((line) => line.startsWith('everywire_calls_in_flight')).map((line) => Number(line.split(' ').pop()));
    if (left.length > 0 && left.reduce((a, b) => a + b) === 0) return;
    assert.ok(Date.now() < end, `in flight: ${left}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
await check('no rejection but those of failing streams', async () => {
  const odd = stray.filter((text) => !/told why|m\d+|404|abort/i.test(text));
  assert.deepEqual(odd, []);
});

console.log(`interop: ${number - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
