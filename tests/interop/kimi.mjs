// @moonshot-ai/kimi-agent-sdk driving examples/kimi_agent, as it drives kimi itself. Needs EW_KIMI_AGENT and EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { check, finish, load, run, versionOf } from './check.mjs';

const agent = process.env.EW_KIMI_AGENT;
const workDir = mkdtempSync(path.join(tmpdir(), 'ew-kimi-'));
process.env.KIMI_SHARE_DIR = workDir; // nothing of the user's own is read or written
const { createSession, ProtocolClient } = await load('@moonshot-ai/kimi-agent-sdk');
console.log(`# @moonshot-ai/kimi-agent-sdk ${versionOf('@moonshot-ai/kimi-agent-sdk')}, node ${process.version}`);

const CHOSEN = ['TurnBegin', 'StepBegin', 'ContentPart', 'ContentPart', 'ToolCall', 'ApprovalRequest'];
const types = (events) => events.map((event) => event.type);
const textOf = (events) => events.filter((e) => e.type === 'ContentPart').map((e) => e.payload.text).join('|');

// Runs a turn; on the approval request `decide(request, turn)` says what happens.
async function take(turn, decide) {
  const events = [];
  for await (const event of turn) {
    events.push(event);
    if (event.type === 'ApprovalRequest') await decide(event.payload, turn);
  }
  return { events, result: await turn.result };
}
const answer = (response) => (request, turn) => turn.approve(request.id, response);

await check('info --json', async () => {
  const { code, out } = await run(agent, ['info', '--json']);
  assert.deepEqual([code, JSON.parse(out)], [0, { wire_protocol_version: '1.7' }]);
});

const session = createSession({ workDir, executable: agent });
await check('a turn, approved', async () => {
  const { events, result } = await take(session.prompt('Say hi, Zoë \u{1f600}'), answer('approve'));
  assert.deepEqual(types(events), [...CHOSEN, 'ApprovalResponse', 'ToolResult', 'StepBegin', 'ContentPart', 'StatusUpdate', 'TurnEnd']);
  assert.equal(textOf(events), 'You said: |Say hi, Zoë \u{1f600}|I have counted.');
  assert.equal(events.find((e) => e.type === 'ToolResult').payload.return_value.is_error, false);
  assert.equal(events.find((e) => e.type === 'ApprovalResponse').payload.response, 'approve');
  assert.equal(result.status, 'finished');
});
await check('a turn, rejected', async () => {
  const { events, result } = await take(session.prompt('Say hi'), answer('reject'));
  assert.equal(events.find((e) => e.type === 'ToolResult').payload.return_value.is_error, true);
  assert.equal(events.find((e) => e.type === 'ApprovalResponse').payload.response, 'reject');
  assert.equal(result.status, 'finished');
});
await check('a turn of content parts', async () => {
  const { events } = await take(session.prompt([{ type: 'text', text: 'part' }]), answer('approve'));
  assert.equal(textOf(events), 'You said: |part|I have counted.');
});
await check('a turn, cancelled while it waits', async () => {
  const { events, result } = await take(session.prompt('stop me'), (_, turn) => turn.interrupt());
  assert.deepEqual(types(events), [...CHOSEN, 'StepInterrupted', 'TurnEnd']);
  assert.equal(result?.status, 'cancelled');
});
await check('a turn, steered', async () => {
  const { events, result } = await take(session.prompt('first'), async (request, turn) => {
    await turn.steer('second');
    await turn.approve(request.id, 'approve');
  });
  assert.equal(textOf(events), 'You said: |first|second|I have counted.');
  assert.equal(result.status, 'finished');
});
await check('plan mode', async () => {
  assert.equal(await session.setPlanMode(true), true);
  assert.equal(await session.setPlanMode(false), false);
});
await check('50 turns', async () => {
  for (let i = 0; i < 50; i++) {
    const { events, result } = await take(session.prompt(`turn ${i}`), answer(i % 2 ? 'approve' : 'reject'));
    assert.equal(types(events).at(-1), 'TurnEnd');
    assert.equal(result.status, 'finished');
  }
});
await check('approved for the session: asked once more, then not', async () => {
  await take(session.prompt('a'), answer('approve_for_session'));
  const { events } = await take(session.prompt('b'), () => assert.fail('asked'));
  assert.ok(!types(events).includes('ApprovalRequest'));
});
await check('a prompt of 1 MB', async () => {
  const { events } = await take(session.prompt('x€'.repeat(250000)), answer('approve'));
  assert.equal(events[0].payload.user_input.length, 500000);
});
await check('close', async () => session.close());

const client = new ProtocolClient();
await check('the handshake', async () => {
  const result = await client.start({ workDir, executablePath: agent });
  assert.equal(result.protocol_version, '1.7');
  assert.equal(result.server.name, 'kimi_agent');
});
await check('a second prompt while one runs fails with invalid state', async () => {
  const first = client.sendPrompt('one');
  let second;
  for await (const event of first.events) {
    if (event.type !== 'ApprovalRequest') continue;
    second = await client.sendPrompt('two').result.then(() => 'no error', (err) => err);
    await client.sendCancel();
    break;
  }
  assert.equal(second.code, 'INVALID_STATE');
  assert.match(second.message, /already running/);
});
await check('steer without a turn fails', async () => {
  await assert.rejects(client.sendSteer('x'), (err) => err.code === 'INVALID_STATE');
});
await check('cancel without a turn is answered', async () => client.sendCancel());
await check('replay', async () => {
  const { result } = client.sendReplay();
  assert.deepEqual(await result, { status: 'finished', events: 0, requests: 0 });
});
await check('the agent goes when it is told to', async () => {
  await client.stop();
  assert.equal(client.isRunning, false);
});
await check('the agent goes when its input ends', async () => assert.equal((await run(agent, ['--wire'])).code, 0));
rmSync(workDir, { recursive: true, force: true });
finish('kimi-agent-sdk');
