"""What RRQ's own Python runner was asked in its captured sessions, asked of a runner of ours with the same handlers
(rrq_runner.c): as many answers, for the same requests, with the same status, type, message and delay, and the same end of
the connection. DIFFERENT has every difference and why it is there.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import concurrent.futures
import datetime
import json
import os
import time
import unittest

import support
from rrq_support import Rrq, message, pack, request
from support import SLOW, Server

FRAME = 16 * 1024 * 1024
REFUSED = {"status": "error", "type": None, "retry": None}
WHY = "we say whose request was refused, and why, before we close"
RUST = "as RRQ's Rust runner does"


def refused(text):
    return dict(REFUSED, message=text)


# What is not as the captures have it. answers: by the function of the request, what is other, or comes where nothing came;
# closes: whether the connection of the scenario ends.
Different = collections.namedtuple("Different", "why answers closes", defaults=({}, None))
DIFFERENT = {
    "numeric_version": Different(WHY, {"echo": refused("protocol_version must be a string")}),
    "deadline_invalid": Different(WHY, {"echo": refused("context.deadline must be an RFC 3339 time")}),
    "enqueue_time_invalid": Different(WHY, {"echo": refused("context.enqueue_time must be an RFC 3339 time")}),
    "missing_context": Different(WHY, {"echo": refused("context must be an object")}),
    "params_array": Different(WHY, {"echo": refused("params must be an object")}),
    "attempt_string": Different("a string is no number, " + RUST,
                                {"echo": refused("context.attempt must be an integer from 0 to 4294967295")}, True),
    "params_null": Different("absent and null are the same to us everywhere",
                             {"echo": {"status": "success", "type": None, "message": None, "retry": None}}, False),
    "unexpected_response": Different("answered, and the connection stays, " + RUST,
                                     {None: refused("unexpected response message"),
                                      "echo": {"status": "success", "type": None, "message": None, "retry": None}}, False),
    "bad_json_with_inflight": Different("what runs is still answered, " + RUST,
                                        {"sleep": {"status": "success", "type": None, "message": None, "retry": None}}),
    "good_then_bad_same_packet": Different("what came before is still answered, " + RUST,
                                           {"echo": {"status": "success", "type": None, "message": None, "retry": None}}),
    "deadline_soon": Different("there it ends with a full stop; Rust and TypeScript have none",
                               {"sleep": {"message": "Job execution timed out"}}),
    "big_response": Different("an outcome that no orchestrator could read is not sent",
                              {"big": {"status": "error", "type": None, "retry": None,
                                       "message": "the result is too large: 17825794 bytes, the limit is 16711680 "
                                                  "(set by frame_bytes)"}}),
    "max_size_frame": Different("an input leaves 64 KiB of a frame to the envelopes of other wires",
                                {"pong": {"status": "error", "type": None, "retry": None,
                                          "message": "the input is too large: 16776938 bytes, the limit is 16711680 "
                                                     "(set by frame_bytes)"}}),
    "outcomes": Different("a fault of ours has always a message; a type of a handler's own is not ours to give; a result that "
                          "is none gets an outcome, there it got nothing",
                          {"fail_empty": {"message": "INTERNAL"}, "custom_error": {"type": None},
                           "unserializable": {"status": "error", "type": None, "retry": None,
                                              "message": "the action's result is not valid JSON"}}),
}

# A head without its frame: there the connection closes, here the frame is awaited and skipped (up to 16 times the limit).
SKIPPED = {"oversize_header"}


def load():
    """scenario: its lines, in order."""
    path = os.path.join(support.SHARED, "captures", "rrq", "python.jsonl")
    if not os.path.exists(path):
        print("SKIP: captures of rrq not present", flush=True)
        raise unittest.SkipTest("captures of rrq not present")
    out = collections.OrderedDict()
    with open(path, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            out.setdefault(entry["scenario"], []).append(entry)
    return out


def parse_time(text):
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when if when.tzinfo else when.replace(tzinfo=datetime.timezone.utc)


def outline(payload, function):
    """Of an outcome what is compared."""
    error = payload.get("error") or {}
    return {"function": function, "request_id": payload.get("request_id"), "job_id": payload.get("job_id"),
            "status": payload["status"], "type": error.get("type"), "message": error.get("message"),
            "retry": payload.get("retry_after_seconds")}


class Replay:
    """One scenario. Deadlines are moved to today; where programs are slow all times are longer, those of the handlers too."""

    def __init__(self, port, lines, begin, closes=None):
        self.port, self.lines, self.begin = port, lines, begin
        self.closes = closes  # whether its connection must end, where that is other than in the captures
        self.conns, self.closed = {}, {}
        self.got = collections.defaultdict(list)  # conn: payloads
        self.functions = {}                       # (request_id, job_id): function

    def run(self):
        before = self.lines[0]["t"]
        try:
            for line in self.lines:
                gap, before = line["t"] - before, line["t"]
                if line["dir"] == "send":
                    time.sleep(min(gap, 0.15) * SLOW)
                    self.send(line)
                elif line["dir"] == "recv":
                    self.hear(line["conn"])
                elif "conn" in line:
                    self.event(line)
        finally:
            for c in self.conns.values():
                c.close()

    # what the orchestrator does

    def adapted(self, frame):
        """It, for the clock and the speed of this machine."""
        payload = frame.get("payload")
        if not isinstance(payload, dict):
            return frame
        if payload.get("function_name") == "sleep":
            frame = dict(frame, payload=dict(payload, params={"ms": int(payload["params"]["ms"] * SLOW)}))
        return self.shifted(frame)

    def shifted(self, frame):
        context = frame["payload"].get("context")
        deadline = context and context.get("deadline")
        if not deadline or not deadline[:4].isdigit():
            return frame
        left = parse_time(deadline) - self.begin - datetime.timedelta(seconds=self.now)
        when = datetime.datetime.now(datetime.timezone.utc) + left * SLOW
        text = when.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if deadline.endswith("Z") else "")
        return dict(frame, payload=dict(frame["payload"], context=dict(context, deadline=text)))

    def send(self, line):
        self.now = line["t"]
        c = self.conns[line["conn"]]
        if line.get("frame", {}).get("type") == "cancel":
            self.settle(line["conn"])
        c.try_send(self.bytes_of(line, c))

    def bytes_of(self, line, c):
        """What was sent; the captures leave out what is long."""
        if line["scenario"] == "max_size_frame":
            head, tail = json.dumps(self.frame_of("pong", self.answer(0))).split('"params": {}')
            pad = '"params": {"pad": "%s"}'
            return pack((head + pad % ("x" * (FRAME - len(head) - len(tail) - len(pad) + 2)) + tail).encode())
        if line["scenario"] == "split_frames":
            data = message("request", self.frame_of("echo", self.answer(0))["payload"])
            for i in range(0, len(data) - 37, 37):
                c.send(data[i:i + 37])
                time.sleep(0.002)
            return data[(len(data) - 1) // 37 * 37:]
        if line["scenario"] == "two_frames_one_packet":
            return b"".join(message("request", self.frame_of("echo", self.answer(i))["payload"]) for i in range(2))
        if line["scenario"] == "good_then_bad_same_packet":
            return message("request", self.frame_of("echo", ("good", "good"))["payload"]) + pack(b"not-json")
        if "raw_hex" in line:
            self.assert_equal(len(line["raw_hex"]), 2 * line["raw_len"])
            return bytes.fromhex(line["raw_hex"])
        if "json_text" in line:
            return pack(line["json_text"].encode())
        return self.frame_bytes(line)

    def frame_bytes(self, line):
        frame = line["frame"]
        text = json.dumps(frame).encode()
        self.assert_equal(len(text), line["len"])  # it is what was sent, byte for byte, but for the deadline
        payload = frame.get("payload")
        if frame.get("type") == "request" and isinstance(payload, dict):
            self.functions[payload.get("request_id"), payload.get("job_id")] = payload["function_name"]
        return pack(json.dumps(self.adapted(frame)).encode())

    def answer(self, n):
        """The ids of the n-th answer that the captures have."""
        payload = [line for line in self.lines if line["dir"] == "recv"][n]["frame"]["payload"]
        return payload["request_id"], payload["job_id"]

    def frame_of(self, function, ids):
        self.functions[ids] = function
        return json.loads(request(function, None, *ids)[4:].decode())

    @staticmethod
    def assert_equal(a, b):
        if a != b:
            raise AssertionError("%r is not %r" % (a, b))

    def settle(self, but):
        """What was sent on the other connections has been read: a cancel finds it."""
        for number in self.conns:
            if number != but and not self.closed.get(number):
                self.catch_up(number)

    def catch_up(self, number):
        """Takes the answers up to that of one more request, or to the end of the connection."""
        self.conns[number].try_send(request("pong", None, "settle", "settle"))
        while not self.closed[number]:
            self.take(number)
            if self.got[number] and self.got[number][-1]["request_id"] == "settle":
                self.got[number].pop()
                return

    # what the runner does

    def hear(self, number):
        if not self.closed.get(number):
            self.take(number)

    def take(self, number):
        """The next answer, unless the connection ends before it."""
        try:
            self.got[number].append(self.conns[number].outcome())
        except support.Closed:
            self.closed[number] = True

    def event(self, line):
        number, what = line["conn"], line["event"]
        if what == "connected":
            self.conns[number] = Rrq(self.port)
            self.conns[number].__enter__()
            self.closed[number] = False
        elif what == "eof_from_peer":
            if self.closes is False:
                self.catch_up(number)
            else:
                self.listen(number, 10.0)
        elif what == "nothing_received":
            self.listen(number, line["waited"])
        elif what == "half_closed_by_us":
            self.conns[number].sock.shutdown(1)
        elif what == "closed_by_us":
            if self.closes:
                self.listen(number, 10.0)
            self.conns[number].close()

    def listen(self, number, seconds):
        """Takes what comes for so long, or until the runner closes."""
        if not self.closed[number]:
            payloads, self.closed[number] = self.conns[number].outcomes(seconds * SLOW)
            self.got[number] += payloads


class Captures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scenarios = load()
        program = os.environ.get("EW_RRQ_RUNNER", "")
        if not os.access(program, os.X_OK):
            raise AssertionError("set EW_RRQ_RUNNER to the built program of rrq_runner.c")
        cls.server = Server(listen=("rrq=127.0.0.1:0",), demo=False)
        cls.server.command = [program] + cls.server.command[2:]
        cls.server.start()
        # when the captures began, by the clock: the answer to a deadline came at that moment
        soon = cls.scenarios["deadline_soon"]
        deadline = next(line["frame"]["payload"]["context"]["deadline"] for line in soon if line["dir"] == "send")
        cls.begin = parse_time(deadline) - datetime.timedelta(seconds=next(line["t"] for line in soon if line["dir"] == "recv"))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def test_all(self):
        self.assertEqual(set(DIFFERENT) - set(self.scenarios), set(), "scenarios that are not in the captures")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(self.guarded, self.scenarios))
        for name, problem in zip(self.scenarios, results):
            with self.subTest(name):
                self.assertIsNone(problem)
        print("captures of rrq: %d scenarios, %d of them different" % (len(results), len(DIFFERENT)))

    def guarded(self, name):
        try:
            return self.play(name)
        except Exception as e:  # pylint: disable=broad-except
            return "%s: %s" % (type(e).__name__, e)

    def play(self, name):
        """None, or what is wrong."""
        if name in SKIPPED:
            return None
        replay = Replay(self.server.port, self.scenarios[name], self.begin, DIFFERENT.get(name, Different("")).closes)
        replay.run()
        want, got = self.expected(name, replay), self.heard(replay)
        if want != got:
            return "expected\n  %s\ngot\n  %s" % ("\n  ".join(map(str, want)), "\n  ".join(map(str, got)))
        return self.compare_results(name, replay)

    @staticmethod
    def ordered(items):
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))

    def heard(self, replay):
        items = [outline(p, replay.functions.get((p.get("request_id"), p.get("job_id"))))
                 for payloads in replay.got.values() for p in payloads]
        return self.ordered(items) + [("closed", replay.closed)]

    def expected(self, name, replay):
        lines, different = self.scenarios[name], DIFFERENT.get(name, Different(""))
        items, closed = [], {}
        for line in lines:
            if line["dir"] == "recv" and "payload" in line["frame"]:
                p = line["frame"]["payload"]
                items.append(outline(p, replay.functions.get((p["request_id"], p["job_id"]))))
            elif line["dir"] == "event" and "conn" in line:
                closed[line["conn"]] = closed.get(line["conn"], False) or line["event"] == "eof_from_peer"
        for function, change in different.answers.items():
            there = [item for item in items if item["function"] == function]
            for item in there:
                item.update(change)
            if not there:
                items.append(dict(change, function=function, **self.ids_for(name, function, replay)))
        if different.closes is not None:
            closed = {number: different.closes for number in closed}
        return self.ordered(items) + [("closed", closed)]

    def ids_for(self, name, function, replay):
        """The ids of the request that was not answered there."""
        ids = next((ids for ids, f in replay.functions.items() if f == function), None)
        if ids is None:
            payload = next(line["frame"]["payload"] for line in self.scenarios[name] if line["dir"] == "send")
            ids = payload["request_id"], payload["job_id"]
        return {"request_id": ids[0], "job_id": ids[1]}

    def compare_results(self, name, replay):
        """The results are the same; of echo, what was sent is."""
        theirs = {}
        for line in self.scenarios[name]:
            if line["dir"] == "recv" and "payload" in line["frame"]:
                p = line["frame"]["payload"]
                theirs[p["request_id"], p["job_id"]] = p["result"]
        for payloads in replay.got.values():
            for p in payloads:
                ids = p.get("request_id"), p.get("job_id")
                if ids not in theirs or p["status"] != "success":
                    continue
                mine, other = p["result"], theirs[ids]
                if replay.functions[ids] == "echo":
                    mine, other = mine["params"], other["params"]
                elif replay.functions[ids] == "sleep":
                    mine = {"slept_ms": mine["slept_ms"] / SLOW}
                if mine != other:
                    return "the result of %s is %r, not %r" % (ids[0], mine, other)
        return None


if __name__ == "__main__":
    support.main()
