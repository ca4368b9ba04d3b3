"""How a WebSocket begins on a listener: the own-ws-handshake corpus, and frames that come early.

SPDX-License-Identifier: Apache-2.0
"""
import time
import unittest

import support
from support import SLOW, Server, WebSocket, ws_frame

REGISTER = b'{"jsonrpc":"2.0","id":"1","method":"register","params":{"id":"early","pid":1}}'
server = None


def setUpModule():
    global server
    server = Server(listen=("127.0.0.1:0", "reflection=127.0.0.1:0")).start()


def tearDownModule():
    server.__exit__(None, None, None)


def head_of(c):
    return support.parse_head(c._until(b"\r\n\r\n", time.monotonic() + 10 * SLOW))


class Handshake(unittest.TestCase):
    def check(self, row, port):
        expect = row["expect"]
        with support.Conn(port) as c:
            c.send(bytes.fromhex(row["request_hex"]) + (ws_frame(1, REGISTER, mask=True) if row["id"] == "early-frame" else b""))
            r = head_of(c)
            codes = expect["status"] if isinstance(expect["status"], list) else [expect["status"]]
            self.assertIn(r.status, codes, r)
            if "accept" in expect:
                self.assertEqual(r.get("sec-websocket-accept"), expect["accept"])
            if "header" in expect and r.status != 101:
                name, value = expect["header"].split(": ")
                self.assertEqual(r.get(name), value)
            if "no_header" in expect:
                self.assertEqual(r.all(expect["no_header"]), [])
            if r.status == 101:
                self.assertEqual(r.get("upgrade"), "websocket")
                self.assertEqual(r.get("connection").lower(), "upgrade")
            if row["id"] == "early-frame":
                self.assertEqual(WebSocket.over(c.sock, True, c.buffer).message()["id"], "1")

    def test_corpus(self):
        rows = support.corpus("own-ws-handshake", "handshake-cases.jsonl")
        for row in rows:
            for listener in server.listeners:
                with self.subTest((row["id"], listener["wire"])):
                    self.check(row, listener["port"])
        print("own-ws-handshake: %d rows on %d listeners" % (len(rows), len(server.listeners)))

    def test_an_unmasked_frame_closes(self):
        ws = WebSocket.dial(server.port)
        with ws:
            ws.send(ws_frame(1, REGISTER, mask=False))
            with self.assertRaises(support.Closed):
                ws.message()
            self.assertEqual(ws.close_code, 1002)

    def test_after_a_request(self):
        """A connection that was used for HTTP before becomes a WebSocket."""
        with server.connect() as c:
            c.send(support.request("POST", "/flow/echo", b'{"data":1}', port=server.port))
            self.assertEqual(c.response().json(), {"result": 1})
            c.send(support.request("GET", "/", None, [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                                                      ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")], port=server.port))
            self.assertEqual(head_of(c).status, 101)
            ws = WebSocket.over(c.sock, True, c.buffer)
            ws.tell(REGISTER.decode())
            self.assertEqual(ws.message()["id"], "1")

    def test_drains(self):
        with Server() as s:
            ws = WebSocket.dial(s.port)
            with ws:
                ws.tell(REGISTER.decode())
                self.assertEqual(ws.message()["id"], "1")
                s.signal()
                with self.assertRaises(support.Closed):
                    while True:
                        ws.message()
            self.assertEqual(s.wait(), 0)


if __name__ == "__main__":
    support.main()
