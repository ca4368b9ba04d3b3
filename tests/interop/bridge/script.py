"""A program that is an action of the gateway: script.py echo|fail|stream|slow|who. It gets its input as one line of JSON and writes lines.
EW_MARKS names a file that gets a line when `slow` begins, ends or is cancelled, as the marks of RRQ's and Stepflow's handlers.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import sys
import time


def mark(event, name):
    with open(os.environ["EW_MARKS"], "ab", buffering=0) as f:
        f.write(("%s %s - 1 %d\n" % (event, name, os.getpid())).encode())


def say(kind, value):
    print('{"%s":%s}' % (kind, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)), flush=True)


def stop(signum, frame):
    mark("cancelled", "slow")
    sys.exit(1)


def main(name, line):
    value = json.loads(line)
    if name == "echo":
        say("result", line)
    elif name == "who":
        say("result", {"pid": os.getpid()})
    elif name == "fail":
        say("error", {member: value[member] for member in ("status", "message", "details") if member in value})
    elif name == "stream":
        for i in range(value["n"]):
            say("chunk", {"i": i, "text": "Zo\u00eb \U0001f600 %d" % i})
        say("result", {"n": value["n"]})
    else:
        signal.signal(signal.SIGTERM, stop)
        mark("begin", "slow")
        time.sleep(value["ms"] / 1000)
        mark("end", "slow")
        say("result", {"slept_ms": value["ms"]})


sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8")
main(sys.argv[1], sys.stdin.readline().strip())
