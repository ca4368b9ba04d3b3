// A server on jayson over TCP; prints its port. Methods: ping, add.
//
// SPDX-License-Identifier: Apache-2.0
import { load } from './check.mjs';

const { default: jayson } = await load('jayson');
const methods = {
  ping: (args, done) => done(null, 'pong'),
  add: ({ a, b }, done) => done(null, a + b),
};
const server = new jayson.Server(methods).tcp();
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
