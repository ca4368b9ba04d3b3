"""Streams of jobs, read by SSE clients from the Python package index: sseclient-py and httpx-sse.
Usage: sse.py EVERYWIRE

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import threading

import httpx
import httpx_sse
import requests
import sseclient

LIMIT = 120  # seconds, for hangs only


class Program:
    """`everywire serve` with jobs."""

    def __init__(self, binary, folder):
        self.process = subprocess.Popen(
            [binary, "serve", "--demo", "--worker", "--store", "sqlite:%s/jobs.db" % folder, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE)
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "listening":
                self.url = "http://127.0.0.1:%d" % event["port"]
            if event["event"] == "ready":
                return
        raise AssertionError("the server did not get ready")

    def enqueue(self, action, data, query=""):
        answer = requests.post("%s/jobs/%s%s" % (self.url, action, query), json=data, timeout=LIMIT)
        assert answer.status_code == 202, answer.text
        return "%s/jobs/%s/stream" % (self.url, answer.json()["job_id"])

    def stop(self):
        self.process.terminate()
        assert self.process.wait(LIMIT) == 0


def headers(last):
    return {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}


def read_sseclient(url, last=None, most=None):
    """Events as (id, event, data); at most that many of them, then the client leaves."""
    events = []
    with requests.get(url, headers=headers(last), stream=True, timeout=LIMIT) as answer:
        assert answer.status_code == 200, answer.status_code
        for event in sseclient.SSEClient(answer).events():
            events.append((event.id, event.event, event.data))
            if len(events) == most:
                break
    return events


def read_httpx(url, last=None, most=None):
    events = []
    with httpx.Client(timeout=LIMIT) as client, httpx_sse.connect_sse(client, "GET", url, headers=headers(last)) as source:
        source.response.raise_for_status()
        for event in source.iter_sse():
            events.append((event.id, event.event, event.data))
            if len(events) == most:
                break
    return events


READERS = {"sseclient-py": read_sseclient, "httpx-sse": read_httpx}


def counted(n):
    return [(str(i), "chunk", '{"i":%d}' % i) for i in range(1, n + 1)] + [("end", "result", '{"count":%d}' % n)]


def equal(got, expected):
    assert got == expected, "%s instead of %s" % (got, expected)


def check_everything_once(program, read):
    url = program.enqueue("count", {"n": 20, "delay_ms": 5})
    equal(read(url), counted(20))
    equal(read(url), counted(20))


def check_failure(program, read):
    url = program.enqueue("fail", {"status": "ABORTED", "message": "no", "details": {"why": "é\n"}}, "?max_retries=1")
    (last, event, data), = read(url)
    equal((last, event), ("end", "error"))
    equal(json.loads(data), {"status": "ABORTED", "message": "no", "details": {"why": "é\n"}})


def check_resume(program, read):
    """The client leaves after every third event and comes back with the id of the last one."""
    url = program.enqueue("count", {"n": 20, "delay_ms": 5})
    seen = []
    for _ in range(7):
        seen += read(url, seen[-1][0] if seen else None, 3)
    equal(seen, counted(20))


def check_after_the_end(program, read):
    url = program.enqueue("count", {"n": 1})
    last = read(url)[-1][0]
    answer = requests.get(url, headers=headers(last), timeout=LIMIT)
    equal((answer.status_code, answer.content), (204, b""))


def check_silence(program, read):
    """The comment that is sent after 15 s of silence is no event."""
    url = program.enqueue("count", {"n": 2, "delay_ms": 17000})
    raw = []

    def read_raw():
        with requests.get(url, headers=headers(None), stream=True, timeout=LIMIT) as answer:
            raw.append(answer.content)

    thread = threading.Thread(target=read_raw)
    thread.start()
    equal(read(url), counted(2))
    thread.join(LIMIT)
    assert b"\n:\n" in raw[0], "no comment came: %r" % raw


CHECKS = (check_everything_once, check_failure, check_resume, check_after_the_end, check_silence)


def run(program, name, read):
    """All checks of one client: how many passed."""
    passed = 0
    for check in CHECKS:
        what = "%s: %s" % (name, check.__name__[len("check_"):].replace("_", " "))
        try:
            check(program, read)
            passed += 1
            print("ok " + what, flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print("FAIL %s: %s %s" % (what, type(e).__name__, e), flush=True)
    return passed


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = Program(sys.argv[1], folder)
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:  # most of the time goes into waiting for silence
                results = [pool.submit(run, program, name, read) for name, read in READERS.items()]
                passed = sum(result.result() for result in results)
        finally:
            program.stop()
    failed = len(READERS) * len(CHECKS) - passed
    print("interop sse: %d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
