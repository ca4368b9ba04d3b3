// A Model Context Protocol server on its own SDK, on standard input and output: one tool, `add`.
//
// SPDX-License-Identifier: Apache-2.0
import { load } from './check.mjs';

const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
const { z } = await load('zod');

const server = new McpServer({ name: 'adder', version: '1.0.0' });
server.registerTool('add', { description: 'adds', inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) => ({
  content: [{ type: 'text', text: String(a + b) }],
}));
const transport = new StdioServerTransport();
await server.connect(transport);
// what its schema refuses it only tells here
server.server.onerror = (err) => process.stderr.write(`mcp server error: ${err.message}\n`);
process.stdin.on('end', () => process.exit(0));
