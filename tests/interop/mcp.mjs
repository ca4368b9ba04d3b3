// @modelcontextprotocol/sdk, whose schema refuses any message with a member it does not know: its server, called by `everywire call`
// and by mcp_call, and its client's transport before `everywire serve`. Needs EVERYWIRE, EW_MCP_CALL and EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { check, everywire, finish, load, run, versionOf, within } from './check.mjs';

const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
console.log(`# @modelcontextprotocol/sdk ${versionOf('@modelcontextprotocol/sdk')}, node ${process.version}`);

const peer = [process.execPath, fileURLToPath(new URL('mcp_server.mjs', import.meta.url))];
const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'everywire', version: '0' } };

await check('everywire call initialize', async () => {
  const { code, out } = await run(everywire, ['call', 'jsonrpc+stdio:', 'initialize', JSON.stringify(hello), '--', ...peer]);
  assert.equal(code, 0);
  assert.equal(JSON.parse(out).serverInfo.name, 'adder');
});
await check('everywire call ping without input', async () => {
  const { code, out, err } = await run(everywire, ['call', 'jsonrpc+stdio:', 'ping', '--timeout', '15s', '--', ...peer]);
  assert.deepEqual([code, out], [0, '{}\n'], err);
});
await check('an unknown method', async () => {
  const { code, err } = await run(everywire, ['call', 'jsonrpc+stdio:', 'nothing', '{}', '--', ...peer]);
  assert.equal(code, 1);
  assert.match(err, /NOT_FOUND/);
});
await check('--input-stream is not taken by a peer that knows no streams', async () => {
  const { code } = await run(everywire, ['call', 'jsonrpc+stdio:', 'ping', '{}', '--input-stream', '--timeout', '1s', '--', ...peer], '1\n');
  assert.notEqual(code, 0);
});
await check('a conversation on one connection', async () => {
  const { code, out, err } = await run(process.env.EW_MCP_CALL, peer);
  const lines = out.trim().split('\n');
  assert.equal(code, 0, out + err);
  assert.equal(err.includes('mcp server error'), false, err);
  assert.deepEqual(lines.map((line) => line.split(' ').slice(0, 2).join(' ')),
    ['initialize OK', 'notifications/initialized OK', 'tools/list OK', 'tools/call OK', 'tools/call OK']);
  assert.equal(JSON.parse(lines[2].slice('tools/list OK '.length)).tools[0].name, 'add');
  assert.equal(JSON.parse(lines[3].slice('tools/call OK '.length)).content[0].text, '42');
  assert.equal(JSON.parse(lines[4].slice('tools/call OK '.length)).content[0].text, '2');
});

// ---- its client side: every answer must pass the schema of its transport ----

const transport = new StdioClientTransport({ command: everywire, args: ['serve', '--demo', '--listen', 'jsonrpc=stdio'], stderr: 'ignore' });
const waiting = new Map();
const problems = [];
transport.onerror = (err) => problems.push(err.message);
transport.onmessage = (message) => {
  if (!waiting.has(message.id)) problems.push(`nobody waits for ${JSON.stringify(message)}`);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
};
await transport.start();
let id = 0;
const ask = (method, params) => within(new Promise((resolve) => {
  const mine = id++ % 2 ? `s-${id}` : id;
  waiting.set(mine, resolve);
  transport.send({ jsonrpc: '2.0', id: mine, method, params });
}));
await check('its transport takes results', async () => {
  assert.deepEqual((await ask('echo', { a: [1, null] })).result, { a: [1, null] });
  assert.deepEqual((await ask('count', { n: 5 })).result, { count: 5 });
});
await check('its transport takes errors', async () => {
  const { error } = await ask('fail', { status: 'NOT_FOUND', message: 'told why', details: { k: 1 } });
  assert.equal(error.message, 'told why');
  assert.equal((await ask('initialize', hello)).error.code, -32601);
});
await check('its transport takes 500 at once, none for notifications', async () => {
  await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const all = await Promise.all(Array.from({ length: 500 }, (_, i) => ask('echo', { i })));
  all.forEach((message, i) => assert.deepEqual(message.result, { i }));
});
await check('its transport had nothing to complain of', async () => assert.deepEqual(problems, []));
await transport.close();
finish('mcp-sdk');
