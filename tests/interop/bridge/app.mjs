// A Genkit app in JavaScript behind the gateway. EW_MARKS names a file that gets a line when a flow begins, ends or is cancelled, as the
// marks of RRQ's and Stepflow's handlers. Needs EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import { appendFileSync } from 'node:fs';
import { load } from '../check.mjs';

const { genkit, z, GenkitError } = (await load('genkit')).default;
const { defineBidiAction } = (await load('@genkit-ai/core')).default;

const mark = (event, name) => process.env.EW_MARKS && appendFileSync(process.env.EW_MARKS, `${event} ${name} - 1 ${process.pid}\n`);
const ai = genkit({ name: 'bridge-app' });

ai.defineFlow('echo', async (input) => input);
ai.defineFlow('who', async (_, { context }) => ({ pid: process.pid, context }));
ai.defineFlow('fail', async ({ status, message, details }) => {
  throw new GenkitError({ status, message, detail: details });
});
ai.defineFlow('stream', async ({ n }, { sendChunk }) => {
  for (let i = 0; i < n; i++) {
    sendChunk({ i, text: `Zo\u00eb \u{1f600} ${i}` });
    if (i % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
  }
  return { n };
});
ai.defineFlow('slow', async ({ ms }, { abortSignal }) => {
  mark('begin', 'slow');
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      mark('end', 'slow');
      resolve({ slept_ms: ms });
    }, ms);
    abortSignal.addEventListener('abort', () => {
      mark('cancelled', 'slow');
      clearTimeout(timer);
      reject(abortSignal.reason);
    });
  });
});
const number = z.number();
defineBidiAction(ai.registry, { actionType: 'flow', name: 'sum', inputSchema: number, outputSchema: number, streamSchema: number },
  async function* ({ inputStream }) {
    let total = 0;
    for await (const item of inputStream) {
      total += item;
      yield total;
    }
    return total;
  });
