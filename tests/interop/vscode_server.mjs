// A server on vscode-jsonrpc, on standard input and output or (with a word "tcp") on a free port that it prints.
//
// SPDX-License-Identifier: Apache-2.0
import { createServer } from 'node:net';
import { load } from './check.mjs';

const rpc = (await load('vscode-jsonrpc/node')).default;

function offer(reader, writer) {
  const connection = rpc.createMessageConnection(reader, writer);
  connection.onRequest('echo', (params) => params);
  connection.onRequest('fail', () => new rpc.ResponseError(-32001, 'told why', { k: 1 }));
  connection.onRequest('throws', () => {
    throw new Error('thrown');
  });
  connection.onRequest('sleep', (params, token) => new Promise((resolve) => {
    const timer = setTimeout(() => resolve('slept'), params.ms);
    token.onCancellationRequested(() => {
      clearTimeout(timer);
      process.stderr.write('cancelled\n');
      resolve(new rpc.ResponseError(rpc.LSPErrorCodes?.RequestCancelled ?? -32800, 'stopped'));
    });
  }));
  connection.listen();
}

if (process.argv.includes('tcp')) {
  const server = createServer((socket) => offer(new rpc.StreamMessageReader(socket), new rpc.StreamMessageWriter(socket)));
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
} else {
  offer(new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
  process.stdin.on('end', () => process.exit(0));
}
