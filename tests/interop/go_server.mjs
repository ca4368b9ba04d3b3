// `everywire call` against go/server, a server on the codec of kimi-agent-sdk. Needs EVERYWIRE, EW_GO_SERVER.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { check, everywire, finish, run, within } from './check.mjs';

const program = process.env.EW_GO_SERVER;
const server = spawn(program, ['tcp'], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = Number(await within(new Promise((resolve) => server.stdout.once('data', resolve))));

const chunks = (values, result) => [...values.map((v) => `{"chunk":${v}}`), `{"result":${result}}`, ''].join('\n');

// The codec refuses requests without params, so its target asks for them.
for (const [name, base, tail] of [['tcp', `jsonrpc://127.0.0.1:${port}`, []], ['stdio', 'jsonrpc+stdio:', ['--', program, 'stdio']]]) {
  const to = (options, words, input) => run(everywire, ['call', base + options, ...words, ...tail], input);
  const call = (words, input) => to('?params=null', words, input);
  const gives = (title, words, input, want) => check(`${name}: ${title}`, async () => {
    const { code, out, err } = await call(words, input);
    assert.equal(code, 0, err);
    assert.equal(out, want);
  });
  for (const input of ['null', 'true', '-1.5', '12345678901234567890', '"Zoë 世界"', '[1,[2]]', '{"b":1,"a":null}']) {
    await gives(`echo ${input}`, ['echo', input], '', `${input}\n`);
  }
  await gives('echo without input', ['echo'], '', 'null\n');
  await check(`${name}: without input and without the option`, async () => {
    const { code, err } = await to('', ['echo']);
    assert.equal(code, 1);
    assert.match(err, /unexpected end of JSON input/);
  });
  await check(`${name}: a stream of events`, async () => {
    const { code, out, err } = await to('?params=null&stream=events', ['watch', '{"n":3}', '--stream']);
    assert.deepEqual([code, out], [0, chunks([1, 2, 3], '"watched"')], err);
  });
  await check(`${name}: a stream of events that fails`, async () => {
    const { code, out, err } = await to('?params=null&stream=events', ['watch', '{"n":-1}', '--stream']);
    assert.deepEqual([code, out], [1, '{"chunk":0}\n'], err);
    assert.match(err, /"status":"ABORTED","message":"told why"/);
  });
  await check(`${name}: a stream of events that is cut off`, async () => {
    const { code, err } = await to('?params=null&stream=events', ['watch', '{"n":0}', '--stream']);
    assert.equal(code, 4);
    assert.match(err, /closed without a result or an error/);
  });
  await check(`${name}: an error that is a string`, async () => {
    const { code, err } = await call(['fail', '{}']);
    assert.equal(code, 1);
    assert.match(err, /"message":"told why"/);
  });
  await check(`${name}: an unknown method`, async () => {
    const { code, err } = await call(['nothing', '{}']);
    assert.equal(code, 1);
    assert.match(err, /"status":"NOT_FOUND"/);
  });
  await gives('download', ['download', '{"n":5}', '--stream'], '', chunks([1, 2, 3, 4, 5], '{"n":5}'));
  await gives('download of none', ['download', '{"n":0}', '--stream'], '', chunks([], '{"n":0}'));
  await gives('upload', ['upload', '{}', '--input-stream'], '1\n2\n3\n', '6\n');
  await gives('both', ['chat', '{}', '--input-stream', '--stream'], '1\n2\n3\n', chunks([2, 4, 6], '"chat"'));
}
await check('1000 downloads by 50 programs at a time', async () => {
  let bad = 0;
  for (let round = 0; round < 20; round++) {
    const ends = await Promise.all(Array.from({ length: 50 }, () =>
      run(everywire, ['call', `jsonrpc://127.0.0.1:${port}`, 'download', '{"n":3}', '--stream'])));
    bad += ends.filter(({ code, out }) => code !== 0 || out !== chunks([1, 2, 3], '{"n":3}')).length;
  }
  assert.equal(bad, 0);
});
server.kill();
finish('go server');
