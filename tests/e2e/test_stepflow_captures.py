"""Captured sessions of Stepflow's own Python servers over HTTP: what the runtime's side said there is said to a server of ours with the
same components, and it answers as they did, but for a table of differences.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import unittest

import support
from stepflow_support import Blobs, component_server, run
from support import Conn, request

FOLDER = os.path.join(support.SHARED, "captures", "stepflow")

# By the id of the request or the note above it: the status of the answer where it is not theirs, and why.
DIFFERENT = {
    "accept */*": (200, "everything is accepted there, so what we answer is"),
    "no accept": (200, "likewise"),
    "POST /other": (404, "the port is for all wires: that is no action"),
    "unknown method": (200, "a request whose id can be read is answered, -32601"),
    "params missing": (200, "no method of these needs them"),
    "component as object": (200, "the protocol's page writes it so"),
    "unknown notification": (202, "it is none of our business"),
    "init-snake": (200, "all generations at once"),
    "init-camel": (200, "likewise"),
    "infer": (200, "-32601"),
    "ex-5": (200, "attempt and observability are optional"),
}


def load(name):
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        print("SKIP: capture %s not present" % name, flush=True)
        raise unittest.SkipTest("capture %s not present" % name)
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def exchanges(lines):
    """(note, request, status, body text) for each HTTP request of the runtime's side that was no reply; streams have no body."""
    note = ""
    for i, line in enumerate(lines):
        frame = line.get("frame")
        if line["dir"] == "note":
            note = frame["note"]
        if line["dir"] != "runtime->server" or line.get("transport") != "http" or not isinstance(frame, dict) or "http" not in frame:
            continue
        answer = next((l["frame"] for l in lines[i + 1:] if l["dir"] == "server->runtime" and l.get("transport") == "http"
                       and str((l.get("frame") or {}).get("http", "")).startswith("HTTP/1.1 ")), None)
        if answer:
            yield note, frame, int(answer["http"].split()[1]), answer.get("body")


def is_reply(body):
    return isinstance(body, dict) and "method" not in body and ("result" in body or "error" in body)


class Captures(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.server = component_server("--threads", "2").start()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def say(self, frame):
        method, path = frame["http"].split(" ", 1)
        headers = {k.lower(): v for k, v in frame["headers"].items()}
        body = frame["body"]
        data = None if method == "GET" else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        fields = [(k, v) for k, v in headers.items() if k not in ("host", "content-type", "content-length")]
        with Conn(self.server.port) as c:
            c.send(request(method, path, data, fields, port=self.server.port, ctype=headers.get("content-type")))
            return c.response()

    def compare(self, theirs, ours, note):
        """What a runtime reads in an answer."""
        self.assertEqual((ours.get("jsonrpc"), ours.get("id")), ("2.0", theirs.get("id")), (note, ours))
        if "error" in theirs:
            codes = {-32003: -32100}  # the older code for a component that failed
            self.assertEqual(ours["error"]["code"], codes.get(theirs["error"]["code"], theirs["error"]["code"]), (note, ours))
            return
        self.assertIn("result", ours, note)
        result = theirs["result"]
        if "output" in result:
            self.assertEqual(ours["result"], result, note)
        elif "info" in result:
            self.assertEqual(ours["result"]["info"]["component"], result["info"]["component"])
        elif "components" not in result:
            for name, value in result.items():
                if name != "supportsBlobRefs":
                    self.assertEqual(ours["result"][name], value, note)

    def replay(self, name, skip=()):
        seen = 0
        for note, frame, status, body in exchanges(load(name)):
            sent = frame["body"]
            key = sent.get("id") if isinstance(sent, dict) and sent.get("id") in DIFFERENT else note
            if is_reply(sent) and note != "response without pending request" or key in skip or (isinstance(sent, dict) and sent.get("id") in skip):
                continue
            seen += 1
            if isinstance(sent, dict) and sent.get("method") == "components/execute" and frame["http"] == "POST /" and status == 200:
                self.execute(name, note, sent, body)
                continue
            ours = self.say(frame)
            wanted = DIFFERENT.get(key, (status, ""))[0]
            self.assertEqual(ours.status, wanted, (note, frame, ours))
            if wanted == status == 200 and frame["http"] == "POST /":
                self.compare(body, ours.json(), note)
        self.assertGreater(seen, 5, name)

    def execute(self, name, note, sent, body):
        ours, _, _ = run(self.server.port, sent, Blobs())
        if isinstance(body, dict):
            self.compare(body, ours, note)
        else:
            self.compare(self.finals[name][sent["id"]], ours, note)

    @property
    def finals(self):
        """The last events of the captured streams, by file and id."""
        out = {}
        for name in ("2025-08-python-http.jsonl", "2026-01-py092-http.jsonl", "2026-03-py0112-http.jsonl"):
            text = "".join(l["raw"] for l in load(name) if l.get("kind") == "sse-chunk")
            messages = [json.loads(m) for m in re.findall(r"^data: (.*)$", text, re.M)]
            out[name] = {m["id"]: m for m in messages if "method" not in m}
        return out

    def test_2025_08(self):
        self.replay("2025-08-python-http.jsonl")

    def test_0_9(self):
        self.replay("2026-01-py092-http.jsonl", skip=("ex-wild",))

    def test_0_11(self):
        """Without its blobs: the API that it names there is gone, and we do not offer to resolve references."""
        self.replay("2026-03-py0112-http.jsonl", skip=("init", "init-2", "rt-1", "blobify-1", "blobify-2", "ex-wild"))

    def test_compat_union(self):
        """One shape of two frames that all of them took."""
        for line in load("compat-union.jsonl"):
            frame = line.get("frame")
            sent = frame.get("body", frame) if isinstance(frame, dict) else None
            if line["dir"] != "runtime->server" or not isinstance(sent, dict) or "method" not in sent or sent.get("id") is None:
                continue
            if sent["method"] == "components/execute":
                sent["params"]["component"] = "/echo"
            got, _, _ = run(self.server.port, sent, Blobs())
            self.assertEqual((got["id"], "result" in got), (sent["id"], True), (sent, got))


if __name__ == "__main__":
    unittest.main(verbosity=2)
