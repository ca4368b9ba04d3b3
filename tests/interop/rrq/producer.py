"""RRQ's own Python client on our librrq_producer.so: everything that it offers, each looked at in Redis.
Usage: producer.py LIBRARY      (with the Python in which rrq is installed; LIBRARY may be RRQ's own, to see whether a failure is ours)

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import ctypes
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

os.environ["RRQ_PRODUCER_LIB_PATH"] = LIBRARY = os.path.abspath(sys.argv[1])

import redis  # noqa: E402
from rrq import producer_ffi  # noqa: E402
from rrq.client import RRQClient  # noqa: E402
from rrq.job import JobStatus  # noqa: E402

from support import Redis, check, equal, finish, free_ports, wait_until  # noqa: E402

UTC = datetime.timezone.utc
FUNCTIONS = {"rrq_producer_new", "rrq_producer_new_from_toml", "rrq_producer_free", "rrq_producer_version", "rrq_producer_constants",
             "rrq_producer_config_from_toml", "rrq_producer_enqueue", "rrq_producer_get_job_status",
             "rrq_producer_wait_for_completion", "rrq_string_free"}


def run(coroutine):
    return asyncio.run(coroutine)


def refuses(words, call, *args, **kwargs):
    """The call must raise an error of the client, and say why."""
    try:
        result = call(*args, **kwargs)
        if asyncio.iscoroutine(result):
            result = run(result)
    except (ValueError, producer_ffi.RustProducerError) as err:
        assert words in str(err), "%r is not in %r" % (words, str(err))
        return
    raise AssertionError("%r was no error: %r" % (args, result))


class World:
    """A client with an empty Redis."""

    def __init__(self, server, **config):
        self.redis = redis.Redis(port=server.port, decode_responses=True)
        self.redis.flushall()
        self.dsn = "redis://127.0.0.1:%d/0" % server.port
        self.client = RRQClient(config=dict({"redis_dsn": self.dsn}, **config))

    def enqueue(self, function="f", **options):
        return run(self.client.enqueue(function, options))

    def job(self, ident):
        return self.redis.hgetall("rrq:job:" + ident)

    def due(self, ident, queue="default"):
        return self.redis.zscore("rrq:queue:" + queue, ident)

    def end(self, ident, status, result=None, error=None):
        """As RRQ's worker ends a job."""
        fields = {"status": status, "result": json.dumps(result)}
        if error:
            fields["last_error"] = error
        pipe = self.redis.pipeline()
        pipe.hset("rrq:job:" + ident, mapping=fields)
        pipe.xadd("rrq:events:job:" + ident, {"event": "completed" if status == "COMPLETED" else "failed", "job_id": ident, "status": status})
        pipe.zrem("rrq:queue:default", ident)
        pipe.execute()


# ---- the library --------------------------------------------------------------------------------------------------


def exports(server):
    said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    equal({line.split()[-1].split("@")[0] for line in said.splitlines()}, FUNCTIONS)


def constants(server):
    found = producer_ffi.get_producer_constants()
    equal((found.job_key_prefix, found.queue_key_prefix, found.idempotency_key_prefix), ("rrq:job:", "rrq:queue:", "rrq:idempotency:"))
    equal(producer_ffi.get_producer_version(), "0.11.1")


def null(server):
    """What no client does: NULL for everything."""
    library = producer_ffi._get_library()
    for name in ("rrq_producer_enqueue", "rrq_producer_get_job_status", "rrq_producer_wait_for_completion"):
        err = ctypes.c_char_p()
        equal(getattr(library, name)(None, b"{}", ctypes.byref(err)), None)
        equal(err.value, b"producer handle is null")
    err = ctypes.c_char_p()
    equal(library.rrq_producer_new(None, ctypes.byref(err)), None)
    equal(err.value, b"received null pointer")
    library.rrq_producer_free(None)
    library.rrq_string_free(None)


# ---- settings -----------------------------------------------------------------------------------------------------


def toml(folder, text, name="rrq.toml"):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def settings(server):
    with tempfile.TemporaryDirectory() as folder:
        path = toml(folder, '[rrq]\nredis_dsn = "redis://127.0.0.1:%d/0"\n' % server.port)
        found = producer_ffi.load_producer_settings(path)
        equal((found.queue_name, found.max_retries, found.job_timeout_seconds, found.result_ttl_seconds, found.idempotency_ttl_seconds,
               found.correlation_mappings), ("rrq:queue:default", 5, 300, 86400, 21600, {}))
        path = toml(folder, '[rrq]\nredis_dsn = "redis://127.0.0.1:%d/0"\ndefault_queue_name = "q"\ndefault_max_retries = 7\n'
                            'default_job_timeout_seconds = 11\ndefault_result_ttl_seconds = 12\ndefault_unique_job_lock_ttl_seconds = 13\n'
                            '[rrq.correlation_mappings]\n"a.b" = "params.x"\nc = "y"\n[rrq.runners.python]\ncmd = ["x"]\ntcp_port = 9000\n'
                            % server.port)
        found = producer_ffi.load_producer_settings(path)
        equal(found.redis_dsn, "redis://127.0.0.1:%d/0" % server.port)
        equal((found.queue_name, found.max_retries, found.job_timeout_seconds, found.result_ttl_seconds, found.idempotency_ttl_seconds,
               found.correlation_mappings), ("rrq:queue:q", 7, 11, 12, 13, {"a.b": "params.x", "c": "y"}))
        client = RRQClient(config_path=path)
        world = World(server)
        ident = run(client.enqueue("f", {"params": {"x": "1", "y": 2}}))
        job = world.job(ident)
        equal((job["queue_name"], job["max_retries"], job["job_timeout_seconds"], job["result_ttl_seconds"]), ("rrq:queue:q", "7", "11", "12"))
        equal(json.loads(job["correlation_context"]), {"a.b": "1", "c": "2"})
        os.environ["RRQ_CONFIG"] = path
        try:
            equal(producer_ffi.load_producer_settings(None).queue_name, "rrq:queue:q")
            os.environ["RRQ_REDIS_DSN"] = "redis://127.0.0.1:1/5"
            equal(producer_ffi.load_producer_settings(None).redis_dsn, "redis://127.0.0.1:1/5")
        finally:
            os.environ.pop("RRQ_REDIS_DSN", None)
            del os.environ["RRQ_CONFIG"]
        os.chdir(folder)
        equal(producer_ffi.load_producer_settings(None).queue_name, "rrq:queue:q")
        os.chdir("/")


def bad_settings(server):
    load = producer_ffi.load_producer_settings
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            refuses("RRQ config not found. Provide --config, set RRQ_CONFIG, or add rrq.toml.", load, None)
        finally:
            os.chdir("/")
        refuses("failed to read config at", load, os.path.join(folder, "none.toml"))
        refuses("failed to parse TOML at", load, toml(folder, "[rrq\n"))
        refuses("default_job_timeout_seconds", load, toml(folder, "[rrq]\ndefault_job_timeout_seconds = 0\n"))
        refuses("invalid RRQ config", load, toml(folder, '[rrq]\ndefault_max_retries = "x"\n'))
        refuses("foo", load, toml(folder, '[rrq]\n[rrq.runners.x]\ncmd = ["x"]\ntcp_port = 9000\nfoo = 1\n'))
        refuses("failed to connect to Redis", RRQClient, config_path=toml(folder, '[rrq]\nredis_dsn = "redis://127.0.0.1:1/0"\n'))
    refuses("failed to connect to Redis", RRQClient, config={"redis_dsn": "redis://127.0.0.1:%d/0" % free_ports()})
    refuses("failed to create Redis client", RRQClient, config={"redis_dsn": "nonsense"})
    refuses("not both", RRQClient, config={}, config_path="x")
    refuses("queue_name cannot be blank", RRQClient, config={"redis_dsn": "x", "queue_name": " "})


# ---- enqueue ------------------------------------------------------------------------------------------------------


def plain(server):
    world = World(server)
    before = time.time()
    params = {"text": "Zoë 世界 \U0001f600 \" \\ \n", "big": 18446744073709551615, "real": 0.5, "deep": [{"a": [None, True]}], "": {}}
    ident = world.enqueue(params=params)
    job = world.job(ident)
    equal(len(ident), 36)
    equal({key: value for key, value in job.items() if key not in ("enqueue_time", "next_scheduled_run_time", "job_params")},
          {"id": ident, "function_name": "f", "status": "PENDING", "current_retries": "0", "max_retries": "5", "job_timeout_seconds": "300",
           "result_ttl_seconds": "86400", "queue_name": "rrq:queue:default", "result": "null"})
    equal(json.loads(job["job_params"]), params)
    equal(job["enqueue_time"], job["next_scheduled_run_time"])
    at = datetime.datetime.fromisoformat(job["enqueue_time"][:26].split("+")[0] + "+00:00").timestamp()
    assert before - 1 <= at <= time.time() + 1, job["enqueue_time"]
    assert job["enqueue_time"].endswith("+00:00"), job["enqueue_time"]
    assert abs(world.due(ident) - at * 1000) < 1000
    equal(world.redis.ttl("rrq:job:" + ident), -1)


def options(server):
    world = World(server, queue_name="mine", max_retries=9, job_timeout_seconds=10, result_ttl_seconds=20)
    job = world.job(world.enqueue())
    equal((job["queue_name"], job["max_retries"], job["job_timeout_seconds"], job["result_ttl_seconds"]), ("rrq:queue:mine", "9", "10", "20"))
    ident = world.enqueue("python#f", queue_name="other", job_id="chosen", max_retries=2, job_timeout_seconds=3, result_ttl_seconds=4,
                          trace_context={"traceparent": "00-ab-cd-01", "x": "ü"})
    equal(ident, "chosen")
    job = world.job("chosen")
    equal((job["function_name"], job["queue_name"], job["max_retries"], job["job_timeout_seconds"], job["result_ttl_seconds"]),
          ("python#f", "rrq:queue:other", "2", "3", "4"))
    equal(json.loads(job["trace_context"]), {"traceparent": "00-ab-cd-01", "x": "ü"})
    assert world.due("chosen", "other")
    world.enqueue(queue_name="rrq:queue:other")
    equal(world.redis.zcard("rrq:queue:other"), 2)
    refuses("job_id already exists", world.client.enqueue, "g", {"job_id": "chosen"})
    equal(world.job("chosen")["function_name"], "python#f")


def deferred(server):
    world = World(server)
    when = datetime.datetime(2030, 1, 1, 12, tzinfo=UTC)
    naive = datetime.datetime(2030, 1, 1, 12)
    elsewhere = datetime.datetime(2030, 1, 1, 14, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for value in (when, naive, elsewhere, "2030-01-01T12:00:00Z"):
        ident = run(world.client.enqueue_deferred("f", {"defer_until": value, "defer_by_seconds": 5}))
        equal(world.due(ident), when.timestamp() * 1000)
    ident = world.enqueue(defer_by_seconds=100.0005)
    job = world.job(ident)
    assert 100 <= world.due(ident) / 1000 - time.time() + 1 <= 103
    assert job["next_scheduled_run_time"] > job["enqueue_time"]
    ident = world.enqueue(enqueue_time=when, defer_by_seconds=1.5)
    equal(world.due(ident), when.timestamp() * 1000 + 1500)


def unique(server):
    world = World(server, idempotency_ttl_seconds=500)
    first = run(world.client.enqueue_with_unique_key("f", "key", {"params": {"n": 1}}))
    second = run(world.client.enqueue_with_unique_key("f", "key", {"params": {"n": 2}}))
    equal(first, second)
    equal(world.redis.zcard("rrq:queue:default"), 1)
    equal(json.loads(world.job(first)["job_params"]), {"n": 1})
    equal(world.redis.get("rrq:idempotency:key"), first)
    assert 490 <= world.redis.ttl("rrq:idempotency:key") <= 500
    assert "job_unique_key" not in world.job(first)
    world.end(first, "COMPLETED")
    equal(run(world.client.enqueue_with_unique_key("f", "key")), first)  # also after its end, while the key lives
    world.redis.delete("rrq:job:" + first)
    third = run(world.client.enqueue_with_unique_key("f", "key"))
    assert third != first
    equal(world.redis.get("rrq:idempotency:key"), third)
    world.enqueue(unique_key="long", unique_ttl_seconds=5, defer_by_seconds=1000)
    assert 990 <= world.redis.ttl("rrq:idempotency:long") <= 1000
    refuses("job_timeout_seconds must be positive", world.client.enqueue, "f", {"unique_key": "left", "job_timeout_seconds": 0})
    equal(world.redis.exists("rrq:idempotency:left"), 0)


def unique_race(server):
    """Many threads at once, on one handle: one job."""
    world = World(server)
    found = []

    def one():
        for i in range(20):
            found.append((i, world.client._producer.enqueue({"function_name": "f", "options": {"unique_key": "k%d" % i}})["job_id"]))
    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal((len(found), len(set(found)), world.redis.zcard("rrq:queue:default")), (160, 20, 20))


def rate_limit(server):
    world = World(server)
    ask = {"rate_limit_key": "user", "rate_limit_seconds": 2.0, "params": {"a": 1}}
    first = run(world.client.enqueue_with_rate_limit("f", ask))
    equal(json.loads(world.job(first)["job_params"]), {"a": 1})
    equal([run(world.client.enqueue_with_rate_limit("f", ask)) for _ in range(3)], [None] * 3)
    equal(world.redis.zcard("rrq:queue:default"), 1)
    assert run(world.client.enqueue_with_rate_limit("f", dict(ask, rate_limit_key="another")))
    assert 0 < world.redis.pttl("rrq:rate_limit:user") <= 2000
    wait_until("the end of the window", lambda: run(world.client.enqueue_with_rate_limit("f", ask)), 10)


def debounce(server):
    world = World(server, correlation_mappings={"n": "params.n"})
    ask = {"debounce_key": "doc", "debounce_seconds": 20.5}
    first = run(world.client.enqueue_with_debounce("f", dict(ask, params={"n": 1})))
    due = world.due(first)
    assert 19 < due / 1000 - time.time() < 21
    equal(json.loads(world.job(first)["correlation_context"]), {"n": "1"})
    time.sleep(0.05)
    second = run(world.client.enqueue_with_debounce("g", dict(ask, params={"m": 2}, max_retries=1)))
    equal(first, second)
    job = world.job(first)
    equal((job["function_name"], json.loads(job["job_params"]), job["max_retries"]), ("g", {"m": 2}, "1"))
    assert "correlation_context" not in job
    assert world.due(first) > due
    equal(world.redis.zcard("rrq:queue:default"), 1)
    world.redis.hset("rrq:job:" + first, "status", "ACTIVE")  # it runs: the next one is another
    third = run(world.client.enqueue_with_debounce("f", ask))
    assert third != first


def refused(server):
    world = World(server)
    client = world.client
    for words, function, options in [
            ("function_name cannot be empty", "  ", {}),
            ("queue_name cannot be blank", "f", {"queue_name": " "}),
            ("cannot be empty", "f", {"unique_key": " "}),
            ("unique_ttl_seconds must be positive", "f", {"unique_key": "k", "unique_ttl_seconds": 0}),
            ("job_timeout_seconds must be positive", "f", {"job_timeout_seconds": 0}),
            ("job_timeout_seconds must be positive", "f", {"job_timeout_seconds": -1}),
            ("defer_by_seconds must be positive", "f", {"defer_by_seconds": -1}),
            ("defer_by_seconds is too large", "f", {"defer_by_seconds": 1e300}),
            ("mutually exclusive", "f", {"rate_limit_key": "a", "rate_limit_seconds": 1, "debounce_key": "b", "debounce_seconds": 1})]:
        refuses(words, client.enqueue, function, options)
    refuses("rate_limit_key is required", client.enqueue_with_rate_limit, "f", {"rate_limit_seconds": 1})
    refuses("rate_limit_seconds is required", client.enqueue_with_rate_limit, "f", {"rate_limit_key": "a"})
    refuses("rate_limit_key cannot be empty", client.enqueue_with_rate_limit, "f", {"rate_limit_key": "", "rate_limit_seconds": 1})
    refuses("rate_limit_seconds must be positive", client.enqueue_with_rate_limit, "f", {"rate_limit_key": "a", "rate_limit_seconds": 0})
    refuses("debounce_key is required", client.enqueue_with_debounce, "f", {"debounce_seconds": 1})
    refuses("debounce_seconds must be positive", client.enqueue_with_debounce, "f", {"debounce_key": "a", "debounce_seconds": -1})
    refuses("extra", client.enqueue, "f", {"unknown": 1})
    equal(world.redis.keys("*"), [])


def correlation(server):
    world = World(server, correlation_mappings={"session": "params.session", "user": "who.id", "flag": "flag", "none": "none",
                                                "trace": "trace", " trimmed ": "session"})
    ident = world.enqueue(params={"session": "s1", "who": {"id": 7}, "flag": True, "trace": "param", "none": None},
                          trace_context={"trace": "wins"})
    equal(json.loads(world.job(ident)["correlation_context"]),
          {"session": "s1", "user": "7", "flag": "true", "trace": "wins", "trimmed": "s1"})
    ident = world.enqueue(params={"session": "ü" * 300, "who": {"id": {"no": "scalar"}}})
    equal(json.loads(world.job(ident)["correlation_context"]), {"session": "ü" * 128, "trimmed": "ü" * 128})
    assert "correlation_context" not in world.job(world.enqueue(params={"session": ""}))


# ---- what became of it --------------------------------------------------------------------------------------------


def status(server):
    world = World(server)
    equal(run(world.client.get_job_status("none")), None)
    ident = world.enqueue()
    found = run(world.client.get_job_status(ident))
    equal((found.status, found.result, found.last_error), (JobStatus.PENDING, None, None))
    for name in ("ACTIVE", "RETRYING"):
        world.redis.hset("rrq:job:" + ident, "status", name)
        equal(run(world.client.get_job_status(ident)).status, JobStatus(name))
    world.end(ident, "FAILED", error="why, \"ü\"")
    found = run(world.client.get_job_status(ident))
    equal((found.status, found.result, found.last_error), (JobStatus.FAILED, None, "why, \"ü\""))
    for result in ({"a": [1, 2.5, None, "ü"]}, 0, False, "", [], "null"):
        world.end(ident, "COMPLETED", result)
        equal(run(world.client.get_job_status(ident)).result, result)
    world.end(ident, "CANCELLED")
    equal(run(world.client.get_job_status(ident)).status, JobStatus.UNKNOWN)


def waiting(server):
    world = World(server)
    ident, failing, never = world.enqueue(), world.enqueue(), world.enqueue()

    async def wait():
        async def later():
            await asyncio.sleep(0.2)
            world.end(ident, "COMPLETED", {"done": True})
            world.end(failing, "FAILED", error="no")
        waits = [world.client.wait_for_completion(each, timeout_seconds=timeout, block_interval_seconds=0.1)
                 for each, timeout in ((ident, 20), (failing, 20), (ident, 20), (never, 0.5), ("none", 0.5))]
        return (await asyncio.gather(*waits, later()))[:-1]
    first, second, third, fourth, fifth = run(wait())
    equal((first.status, first.result), (JobStatus.COMPLETED, {"done": True}))
    equal((second.status, second.last_error), (JobStatus.FAILED, "no"))
    equal((third.status, fourth, fifth), (JobStatus.COMPLETED, None, None))
    refuses("greater than", lambda: world.client._producer.wait_for_completion_with_options(job_id="x", timeout_seconds=0,
                                                                                           block_interval_seconds=0))


def reconnects(server):
    """The server drops the connection: the next call goes on another."""
    world = World(server)
    world.enqueue()
    for _ in range(3):
        world.redis.client_kill_filter(_type="normal", skipme=True)
        done = wait_until("a call that works", lambda: attempt(world), 10)
        assert world.job(done)


def attempt(world):
    try:
        return world.enqueue()
    except ValueError:
        return None


def many(server):
    world = World(server)

    async def all_of_them():
        return await asyncio.gather(*[world.client.enqueue("f", {"params": {"i": i}}) for i in range(1000)])
    idents = run(all_of_them())
    equal((len(set(idents)), world.redis.zcard("rrq:queue:default")), (1000, 1000))
    clients = [RRQClient(config={"redis_dsn": world.dsn}) for _ in range(20)]
    for client in clients:
        run(client.enqueue("f"))
        run(client.close())
        run(client.close())


def main():
    print("# client %s, library %s" % (producer_ffi.__file__, LIBRARY), flush=True)
    with tempfile.TemporaryDirectory(prefix="ew-redis-") as folder, Redis(folder) as server:
        check("the library exports ten functions", exports, server)
        check("version and constants", constants, server)
        check("NULL", null, server)
        check("settings from rrq.toml", settings, server)
        check("settings that are wrong", bad_settings, server)
        check("a job as RRQ writes it", plain, server)
        check("options of the client and of a job", options, server)
        check("deferred", deferred, server)
        check("unique keys", unique, server)
        check("unique keys from many threads", unique_race, server)
        check("rate limit", rate_limit, server)
        check("debounce", debounce, server)
        check("what is refused", refused, server)
        check("correlation", correlation, server)
        check("status of a job", status, server)
        check("waiting for jobs", waiting, server)
        check("a lost connection", reconnects, server)
        check("a thousand at once, and many clients", many, server)
    finish("rrq producer")


main()
