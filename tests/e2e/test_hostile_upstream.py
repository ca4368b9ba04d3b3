"""HTTP servers that answer calls of ours with anything but a result: every command ends with a clear error, `serve` stays
up, and no caller gets or ends the call of another.

SPDX-License-Identifier: Apache-2.0
"""
import json
import threading
import unittest

import support
from support import LONG_ENOUGH, FakeServer, Server, canned, cli, request, wait_until

ANSWERS = [("202 Accepted", b"accepted"), ("202 Accepted", b""), ("201 Created", b'{"result":1}'),
           ("206 Partial Content", b"7"), ("302 Found", b"<html>")]
LISTING = b'{"/flow/a":{"key":"/flow/a","name":"a"}}'


def answer(status, body):
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        status.encode(), len(body), body)


class Upstream(FakeServer):
    """Lists one action; a call is answered by what run(data) returns."""

    def __init__(self, run):
        def respond(s, got):
            if got["method"] == "GET":
                s.sendall(answer("200 OK", LISTING))
            else:
                s.sendall(run(json.loads(got["body"])["data"]))
            return True
        super().__init__(respond)

    def calls(self):
        return [json.loads(r["body"])["data"] for r in self.requests if r["method"] == "POST"]


class Commands(unittest.TestCase):
    def test_unexpected_status(self):
        for status, body in ANSWERS:
            code = status.split()[0]
            with FakeServer(canned(status, body, ctype="text/plain")) as fake:
                for command in (("call", fake.url, "/flow/a", "--timeout", LONG_ENOUGH),
                                ("call", fake.url, "/flow/a", "--stream", "--timeout", LONG_ENOUGH),
                                ("list", fake.url), ("describe", fake.url, "/flow/a")):
                    with self.subTest(status=status, body=body, command=command[0]):
                        result = cli(*command)
                        self.assertEqual(result.code, 1, result)
                        self.assertEqual(result.error()["status"], "UNKNOWN", result)
                        self.assertIn("HTTP status " + code, result.error()["message"])

    def test_fault_with_status_ok(self):
        body = b'{"error":{"status":"OK","message":"fine"}}'
        for status in ("200 OK", "500 Internal Server Error"):
            with self.subTest(status=status), FakeServer(canned(status, body)) as fake:
                result = cli("call", fake.url, "/flow/a", "--timeout", LONG_ENOUGH)
                self.assertEqual((result.code, result.error()["status"]), (1, "UNKNOWN"), result)


class Gateway(unittest.TestCase):
    def test_import_survives(self):
        for status, body in ANSWERS:
            with self.subTest(status=status), Upstream(lambda _, a=answer(status, body): a) as up, \
                    Server("--import", up.url, demo=False) as server:
                self.assertTrue(wait_until(lambda: server.get("/api/actions").json()))
                for _ in range(3):
                    r = server.post("/flow/a", b'{"data":1}', headers=[("x-everywire-timeout-ms", "60000")])
                    self.assertEqual((r.status, r.json()["status"]), (500, "UNKNOWN"), r)
                self.assertTrue(server.running())

    def test_listing_refused(self):
        with FakeServer(canned("202 Accepted", b"later", ctype="text/plain")) as fake, \
                Server("--import", fake.url) as server:
            self.assertTrue(wait_until(lambda: fake.requests))
            self.assertEqual(server.call("/flow/echo", b"1").json(), {"result": 1})

    def test_leaving_caller_does_not_cancel_another(self):
        release = threading.Event()

        def run(data):
            if data == "a":
                return answer("202 Accepted", b"accepted")
            release.wait(60)
            return answer("200 OK", b'{"result":"b"}')

        with Upstream(run) as up, Server("--import", up.url, "--threads", "1", demo=False) as server:
            self.assertTrue(wait_until(lambda: server.get("/api/actions").json()))
            a, b = server.connect(), server.connect()
            try:
                a.send(request("POST", "/flow/a", b'{"data":"a"}', port=server.port))
                self.assertEqual(a.response().json()["status"], "UNKNOWN")
                b.send(request("POST", "/flow/a", b'{"data":"b"}', port=server.port))
                self.assertTrue(wait_until(lambda: up.calls() == ["a", "b"]))
                a.close()
                release.set()
                self.assertEqual(b.response().json(), {"result": "b"})
            finally:
                release.set()
                b.close()

    def test_bytes_after_an_answer_reach_no_caller(self):
        forged = answer("200 OK", b'{"result":"forged"}')

        def run(data):
            return answer("200 OK", json.dumps({"result": data}).encode()) + forged

        with Upstream(run) as up, Server("--import", up.url, "--threads", "1", demo=False) as server:
            self.assertTrue(wait_until(lambda: server.get("/api/actions").json()))
            for i in range(5):
                self.assertEqual(server.call("/flow/a", b"%d" % i).json(), {"result": i})
            self.assertEqual(up.calls(), list(range(5)))


if __name__ == "__main__":
    support.main()
