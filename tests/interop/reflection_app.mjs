// A Genkit app in JavaScript, for the reflection wire: the real runtime. Started with GENKIT_ENV=dev and GENKIT_REFLECTION_V2_SERVER it
// dials the manager; what happens inside is noted in the file EW_APP_LOG, one line each ("cancelled"). Needs EW_INTEROP_CACHE.
//
// SPDX-License-Identifier: Apache-2.0
import { appendFileSync } from 'node:fs';
import { load } from './check.mjs';

const { genkit, z, GenkitError } = (await load('genkit')).default;
const { defineBidiAction } = (await load('@genkit-ai/core')).default;

const note = (text) => process.env.EW_APP_LOG && appendFileSync(process.env.EW_APP_LOG, `${text}\n`);
const ai = genkit({ name: process.env.EW_APP_NAME ?? 'interop-app' });

ai.defineFlow({ name: 'hello', inputSchema: z.string(), outputSchema: z.string() }, async (name) => `Hello, ${name}!`);
ai.defineFlow('echo', async (input) => input);
ai.defineFlow({ name: 'big', inputSchema: z.number() }, async (n) => 'x'.repeat(n));
ai.defineFlow('nothing', async () => undefined);
ai.defineFlow('who', async (_, { context }) => ({ context, app: process.env.EW_APP_NAME ?? null }));
ai.defineFlow('failing', async () => {
  throw new GenkitError({ status: 'FAILED_PRECONDITION', message: 'told why', detail: { k: 1 } });
});
ai.defineFlow('throws', async () => {
  throw new Error('thrown');
});
ai.defineFlow({ name: 'streamy', inputSchema: z.number() }, async (n, { sendChunk }) => {
  for (let i = 0; i < n; i++) {
    sendChunk({ i, text: `Zo\u00eb \u{1f600} ${i}` });
    if (i % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
  }
  return `done ${n}`;
});
ai.defineFlow({ name: 'slow', inputSchema: z.number() }, async (ms, { abortSignal }) => {
  note(`slow begins in ${process.pid}`);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve('slept'), ms);
    abortSignal.addEventListener('abort', () => {
      note('cancelled');
      clearTimeout(timer);
      reject(abortSignal.reason);
    });
  });
});
defineBidiAction(ai.registry, { actionType: 'custom', name: 'sum', inputSchema: z.number(), outputSchema: z.number(), streamSchema: z.number() },
  async function* ({ inputStream }) {
    let total = 0;
    for await (const number of inputStream) {
      total += number;
      yield total;
    }
    return total;
  });
