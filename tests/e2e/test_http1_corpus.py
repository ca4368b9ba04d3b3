"""Hostile and odd HTTP/1 over a socket: the own-http1 corpus, and the llhttp corpus' requests that must be refused.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import time
import unittest

import support
from support import Server, wait_until

WAIT_MS = 600
LIMITS = ["--limit", "head_ms=%d" % WAIT_MS, "--limit", "body_stall_ms=%d" % WAIT_MS]

server = None


def setUpModule():
    global server
    server = Server("--allow-host", "localhost", *LIMITS).start()


def tearDownModule():
    server.__exit__(None, None, None)


def parallel(work, cases, workers=24):
    """Runs work(case) for all, in threads; returns the problems (strings)."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return [p for p in pool.map(work, cases) if p]


def guarded(work):
    def run(case):
        try:
            return work(case)
        except Exception as e:  # pylint: disable=broad-except
            return "%s: %s: %s" % (case["id"], type(e).__name__, e)
    return run


class OwnHttp1(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = support.corpus("own-http1", "http1-cases.jsonl")

    def judge(self, case, answers, closed, quiet_only=False):
        who = case["id"]
        if not answers:
            return "%s: no answer, closed=%s" % (who, closed)
        first = answers[0].status
        if not any(low <= first <= high for low, high in case["status"]):
            return "%s: answered %d, allowed %s" % (who, first, case["status"])
        if len(answers) > case.get("responses", 99):
            return "%s: %d answers: %s" % (who, len(answers), [a.status for a in answers])
        if case.get("closes") and not closed:
            return "%s: not closed after %d" % (who, first)
        if first >= 400 and answers[0].body:
            try:
                body = answers[0].json()
                if body["code"] != first or not body["status"] or not body["message"]:
                    return "%s: odd error body %r" % (who, answers[0].body)
            except (ValueError, KeyError, TypeError):
                return "%s: error body is no JSON of ours: %r" % (who, answers[0].body[:200])
        if case.get("closes") and not answers[-1].closes() and answers[-1].version == 1 and "HTTP/1.0" not in who and who != "ok-http10":
            return "%s: closes without Connection: close" % who
        return None

    def run_case(self, case, split=None):
        with server.connect() as c:
            for part in case["send_hex"]:
                data = bytes.fromhex(part)
                if split is None:
                    c.try_send(data)
                else:
                    for i in range(0, len(data), split):
                        if not c.try_send(data[i:i + split]):
                            break
                        if i % 8 == 0:
                            time.sleep(0.0002)
                if len(case["send_hex"]) > 1:
                    time.sleep(0.03)
            answers, closed = c.everything(quiet=0.25 if not case.get("closes") else 1.0)
            return self.judge(case, answers, closed)

    def test_whole(self):
        cases = [c for c in self.cases if not c.get("waits")]
        problems = parallel(guarded(self.run_case), cases)
        print("own-http1: %d cases sent whole" % len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_byte_by_byte(self):
        cases = [c for c in self.cases if not c.get("waits") and sum(len(p) for p in c["send_hex"]) < 800]
        problems = parallel(guarded(lambda case: self.run_case(case, split=1)), cases)
        print("own-http1: %d cases sent byte by byte" % len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_unfinished_requests_are_waited_for_and_cut(self):
        cases = [c for c in self.cases if c.get("waits")]

        def work(case):
            with server.connect() as c:
                for part in case["send_hex"]:
                    c.send(bytes.fromhex(part))
                if not c.quiet(WAIT_MS / 1000 * 0.5):
                    return "%s: did not wait: %r" % (case["id"], c.buffer[:100])
                begin = time.monotonic()
                answers, closed = c.everything(quiet=2.0, timeout=6)
                if not closed:
                    return "%s: still open after %.1f s, answers %s" % (case["id"], time.monotonic() - begin, answers)
                if answers and (len(answers) > 1 or answers[0].status != 408):
                    return "%s: %s" % (case["id"], answers)
                return None
        problems = parallel(guarded(work), cases, workers=len(cases))
        print("own-http1: %d cases that wait" % len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))


class Llhttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = [c for c in support.corpus("llhttp", "llhttp-cases.jsonl") if c["type"].startswith("request")]

    PAUSES = (22, 23)  # the parser stops for an upgrade or CONNECT: no error of the request's framing

    def send(self, case):
        with server.connect() as c:
            c.try_send(bytes.fromhex(case["input_hex"]))
            return c.everything(quiet=2.5, timeout=6)

    def test_refused(self):
        cases = [c for c in self.cases if c["strict"] and c.get("error_code")]

        def work(case):
            answers, closed = self.send(case)
            codes = [a.status for a in answers]
            if not closed:
                return "%s: not closed, answers %s" % (case["id"], codes)
            if any(code < 400 for code in codes):
                return "%s (%s): answered %s" % (case["id"], case["error"], codes)
            if case["error_code"] not in self.PAUSES and len(codes) > 1:
                return "%s (%s): a second answer: %s" % (case["id"], case["error"], codes)
            if any(code >= 500 and code not in (501, 505) for code in codes):
                return "%s: blames the server: %s" % (case["id"], codes)
            return None
        problems = parallel(guarded(work), cases, workers=len(cases))
        print("llhttp: %d strict requests that must be refused" % len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_lenient_ones_are_refused_too(self):
        cases = [c for c in self.cases if not c["strict"]]

        def work(case):
            answers, closed = self.send(case)
            codes = [a.status for a in answers]
            if not closed or any(code < 400 for code in codes):
                return "%s: closed=%s, answers %s" % (case["id"], closed, codes)
            return None
        problems = parallel(guarded(work), cases, workers=len(cases))
        print("llhttp: %d lenient requests" % len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_good_ones_get_proper_answers(self):
        # foreign hosts and paths: any answer but success; what matters is that each is well formed
        cases = [c for c in self.cases if c["strict"] and not c.get("error_code")]

        def work(case):
            answers, _ = self.send(case)
            for a in answers:
                if a.status < 400 and a.status not in (200, 204):
                    return "%s: %s" % (case["id"], a)
            return None
        problems = parallel(guarded(work), cases, workers=len(cases))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))


class Smuggling(unittest.TestCase):
    """The hidden request asks for an action with a name of its own, so that running it would show in the metrics."""

    def hidden(self):
        body = b'{"data":{"n":1}}'
        return (b"POST /flow/count HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (server.port, len(body), body))

    def test_nothing_hidden_runs(self):
        host = b"Host: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % server.port
        first = b'{"data":1}'
        heads = [
            b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 10\r\n",
            b"Content-Length: 10\r\nContent-Length: 0\r\n", b"Content-Length: 0\r\nContent-Length: 10\r\n", b"Content-Length: 0, 10\r\n",
            b"Content-Length : 0\r\n", b" Content-Length: 0\r\n", b"Content-Length: +0\r\n", b"Content-Length: 0x0\r\n", b"Content-Length: -0\r\n",
            b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, identity\r\n",
            b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
            b"X: y\nContent-Length: 0\r\n", b"X: y\rContent-Length: 0\r\n", b"X: y\r\n Content-Length: 0\r\n", b"X:\x00\r\nContent-Length: 0\r\n",
        ]
        before = server.metrics().total(support.CALLS, action="/flow/count")
        for head in heads:
            with self.subTest(head), server.connect() as c:
                c.try_send(b"POST /flow/echo HTTP/1.1\r\n" + host + head + b"\r\n" + self.hidden() + first)
                answers, closed = c.everything(quiet=1.5)
                self.assertEqual(len(answers), 1)
                self.assertIn(answers[0].status, (400, 501))
                self.assertTrue(closed)
                self.assertTrue(answers[0].closes())
        self.assertEqual(server.metrics().total(support.CALLS, action="/flow/count"), before)

    def test_the_server_lives(self):
        self.assertEqual(server.call("/flow/echo", b"1").body.rstrip(b"\n"), b'{"result":1}')
        self.assertTrue(wait_until(lambda: server.metrics().total(support.IN_FLIGHT) == 0))


if __name__ == "__main__":
    support.main()
