/*
 * store/redis/scripts.c: the scripts that run in Redis, one for each change. See redis.h.
 *
 * A script that fails half-way leaves what it has written. So each looks first, then writes to the key that may have a
 * wrong type (a queue, a list of dead letters), and last to those that it has seen to be right; what may fail after
 * that is called so that it cannot end the script (pcall). Numbers that may be large stay texts: Lua would write 1e+15.
 *
 * Queues are named by their whole key, as RRQ's field queue_name has it. Keys are made of ids inside the scripts, as in
 * RRQ: a cluster cannot run them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/redis.h"

/* clang-format off */

/* Whether a lock is there, and whose; a key of another type counts as none, and is removed by who takes the job. */
#define LOCK \
    "local function owner_of(id)\n" \
    "  local owner = redis.pcall('GET', 'rrq:lock:job:' .. id)\n" \
    "  if type(owner) == 'string' then return owner end\n" \
    "  return nil\n" \
    "end\n"

/*
 * Whether the claim holds that its worker speaks of: 1, and who has its lock; 0: not any more; -1: there is no such
 * job.
 */
#define HELD LOCK \
    "local function held(id, worker, epoch)\n" \
    "  local is = redis.call('HMGET', 'rrq:job:' .. id, 'status', 'worker_id', 'ew_epoch')\n" \
    "  if not is[1] and redis.call('EXISTS', 'rrq:job:' .. id) == 0 then return -1 end\n" \
    "  if is[1] ~= 'ACTIVE' or is[2] ~= worker or (is[3] or '0') ~= epoch then return 0 end\n" \
    "  local owner = owner_of(id)\n" \
    "  if owner and owner ~= worker then return 0 end\n" \
    "  return 1, owner\n" \
    "end\n"

/* Who waits for the end is told, and the job lives for a while, or for ever. */
#define ENDED \
    "local function ended(id, status, event, ttl)\n" \
    "  local stream = 'rrq:events:job:' .. id\n" \
    "  local said = redis.pcall('XADD', stream, '*', 'event', event, 'job_id', id, 'status', status)\n" \
    "  if type(said) == 'table' and said.err then\n" \
    "    redis.call('DEL', stream)\n" \
    "    redis.call('XADD', stream, '*', 'event', event, 'job_id', id, 'status', status)\n" \
    "  end\n" \
    "  for _, key in ipairs({'rrq:job:' .. id, stream, 'ew:chunks:' .. id}) do\n" \
    "    if ttl == '0' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ttl) end\n" \
    "  end\n" \
    "end\n" \
    "local function release(id, unique)\n" \
    "  if not unique or unique == '' then return end\n" \
    "  for _, key in ipairs({'rrq:lock:unique:' .. unique, 'rrq:idempotency:' .. unique}) do\n" \
    "    if redis.pcall('GET', key) == id then redis.call('DEL', key) end\n" \
    "  end\n" \
    "end\n"

/*
 * ENQUEUE. KEYS hash, queue, key of the guard, and RRQ's lock of a job that carries its unique key itself (its
 * schedules look at that one; or ''); ARGV guard, id, score, life of the key in ms, then names and values. Returns what
 * (1 new, 0 known, 2 limited, -1 there is such an id) and an id. A job that carries the key gives it free with its end;
 * a worker of RRQ frees the lock only, so the end is looked at here.
 */
static const char enqueue[] =
    "local job, queue, guard, lock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]\n"
    "local mode, id, score, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n"
    "local function put_off(old)\n"
    "  local key, wants, set, drop = 'rrq:job:' .. old, {}, {}, {}\n"
    "  local is = redis.pcall('HMGET', key, 'status', 'queue_name')\n"
    "  if is.err or is[1] ~= 'PENDING' then return false end\n"
    "  for i = 5, #ARGV, 2 do wants[ARGV[i]] = ARGV[i + 1] end\n"
    "  for _, name in ipairs({'function_name', 'job_params', 'next_scheduled_run_time', 'max_retries',\n"
    "      'job_timeout_seconds', 'result_ttl_seconds', 'queue_name', 'trace_context', 'correlation_context',\n"
    "      'ew_timeout_ms', 'ew_result_ttl_ms'}) do\n"
    "    if wants[name] then\n"
    "      set[#set + 1] = name\n"
    "      set[#set + 1] = wants[name]\n"
    "    elseif name ~= 'trace_context' then\n"
    "      drop[#drop + 1] = name\n"
    "    end\n"
    "  end\n"
    "  redis.call('ZADD', queue, score, old)\n"
    "  if is[2] and is[2] ~= queue then redis.pcall('ZREM', is[2], old) end\n"
    "  redis.call('HSET', key, unpack(set))\n"
    "  if #drop > 0 then redis.call('HDEL', key, unpack(drop)) end\n"
    "  redis.call('PEXPIRE', guard, ttl)\n"
    "  return true\n"
    "end\n"
    "local function holds(key)\n"
    "  local old = redis.call('GET', key)\n"
    "  if not old then return nil end\n"
    "  local is = redis.pcall('HMGET', 'rrq:job:' .. old, 'status', 'job_unique_key')\n"
    "  if is.err then return old end\n"
    "  if not is[1] and redis.call('EXISTS', 'rrq:job:' .. old) == 0 then return nil end\n"
    "  local final = is[1] == 'COMPLETED' or is[1] == 'FAILED' or is[1] == 'CANCELLED'\n"
    "  if final and is[2] and guard == 'rrq:idempotency:' .. is[2] then return nil end\n"
    "  return old\n"
    "end\n"
    "if mode == 'unique' then\n"
    "  local old = holds(guard) or (lock ~= '' and holds(lock))\n"
    "  if old then return {0, old} end\n"
    "elseif mode ~= 'none' then\n"
    "  local old = redis.call('GET', guard)\n"
    "  if old and mode == 'rate' then return {2, ''} end\n"
    "  if old and put_off(old) then return {0, old} end\n"
    "end\n"
    "if redis.call('EXISTS', job) == 1 then return {-1, id} end\n"
    "redis.call('ZADD', queue, score, id)\n"
    "redis.call('HSET', job, unpack(ARGV, 5))\n"
    "if mode ~= 'none' then\n"
    "  for _, key in ipairs({guard, lock}) do\n"
    "    if ttl == '0' and key ~= '' then redis.call('SET', key, id)\n"
    "    elseif key ~= '' then redis.call('SET', key, id, 'PX', ttl) end\n"
    "  end\n"
    "end\n"
    "return {1, id}\n";

/*
 * CLAIM. KEYS the worker's active set, then queues; ARGV worker, now in ms, how many, lease in ms, start_time, score in
 * the active set, then how many of each queue. Returns when something will be due (a score, or ''), what went wrong
 * with a queue (or ''), how many queues went well, and for each job its queue's number, id, epoch and the hash as it
 * was.
 *
 * Entries that stay where they are (locked by somebody) are passed by; how many are looked at has a limit. An entry
 * without a job goes, as in RRQ; so does one of a job that has ended, except of a dead letter that RRQ's tool is just
 * bringing back: it fills the queue first and the hash later.
 */
static const char claim[] =
    "local worker, now, want, lease, start, score = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]\n"
    "local active, got, due, bad, good = KEYS[1], {'', '', 0}, nil, '', 0\n"
    "redis.call('ZCARD', active)\n"
    "local function is_stray(queue, id, status)\n"
    "  if status == 'COMPLETED' or status == 'CANCELLED' then return true end\n"
    "  return tonumber(now) - tonumber(redis.call('ZSCORE', queue, id)) > 60000\n"
    "end\n"
    /* nil: it stays in the queue; false: it is gone from it */
    "local function take(number, queue, id)\n"
    "  local job, lock = 'rrq:job:' .. id, 'rrq:lock:job:' .. id\n"
    "  if not redis.call('SET', lock, worker, 'NX', 'PX', lease) then return nil end\n"
    "  local hash, status, home = redis.pcall('HGETALL', job), nil, queue\n"
    "  if hash.err then\n"
    "    redis.call('DEL', lock)\n"
    "    return nil\n"
    "  end\n"
    "  for i = 1, #hash, 2 do\n"
    "    if hash[i] == 'status' then status = hash[i + 1] elseif hash[i] == 'queue_name' then home = hash[i + 1] end\n"
    "  end\n"
    "  local final = status == 'COMPLETED' or status == 'CANCELLED' or status == 'FAILED'\n"
    "  if #hash == 0 or final then\n"
    "    local stray = #hash == 0 or is_stray(queue, id, status)\n"
    "    redis.call('DEL', lock)\n"
    "    if not stray then return nil end\n"
    "    redis.call('ZREM', queue, id)\n"
    "    return false\n"
    "  end\n"
    "  redis.call('ZREM', queue, id)\n"
    "  if home ~= queue then redis.pcall('ZREM', home, id) end\n"
    "  local epoch = redis.pcall('HINCRBY', job, 'ew_epoch', 1)\n"
    "  if type(epoch) ~= 'number' then\n"
    "    redis.call('HSET', job, 'ew_epoch', '1')\n"
    "    epoch = 1\n"
    "  end\n"
    "  redis.call('HSET', job, 'status', 'ACTIVE', 'start_time', start, 'worker_id', worker, 'ew_worker', worker)\n"
    "  redis.call('ZADD', active, score, id)\n"
    "  return {number, id, epoch, hash}\n"
    "end\n"
    "for number = 2, #KEYS do\n"
    "  local queue, room = KEYS[number], math.min(tonumber(ARGV[number + 5]), want)\n"
    "  if redis.pcall('SISMEMBER', 'ew:paused', string.sub(queue, 11)) ~= 1 then\n"
    "    local left, skip = 4 * room + 1000, 0\n"
    "    local next = redis.pcall('ZRANGEBYSCORE', queue, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)\n"
    "    if next.err then\n"
    "      bad, room = queue .. ': ' .. next.err, 0\n"
    "    else\n"
    "      good = good + 1\n"
    "      if next[2] and (not due or tonumber(next[2]) < tonumber(due)) then due = next[2] end\n"
    "    end\n"
    "    while room > 0 and left > 0 do\n"
    "      local n = math.max(room, math.min(skip, 256))\n"
    "      local ids = redis.call('ZRANGEBYSCORE', queue, '-inf', now, 'LIMIT', skip, n)\n"
    "      left = left - #ids\n"
    "      for i = 1, #ids do\n"
    "        if room == 0 then break end\n"
    "        local one = take(number - 2, queue, ids[i])\n"
    "        if one then\n"
    "          got[#got + 1] = one\n"
    "          room, want = room - 1, want - 1\n"
    "        elseif one == nil then\n"
    "          skip = skip + 1\n"
    "        end\n"
    "      end\n"
    "      if #ids < n then break end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "if #got > 3 then redis.pcall('SADD', 'ew:workers', worker) end\n"
    "got[1], got[2], got[3] = due or '', bad, good\n"
    "return got\n";

/*
 * CHANGE. KEYS queue, list of dead letters; ARGV id, worker, epoch, 'held' or 'lost', status, score, when that is, now,
 * retries, lost, result, last_error, error, ttl in ms, unique key, name of the dead-letter queue. Returns 1; 0: the
 * claim does not hold (or still does); -1: there is no such job. A job of a worker of RRQ is lost by RRQ's rule, its
 * health key is gone, too.
 */
static const char change[] = HELD ENDED
    "local id, worker, status = ARGV[1], ARGV[2], ARGV[5]\n"
    "local job, lock = 'rrq:job:' .. id, 'rrq:lock:job:' .. id\n"
    "local holds, owner = held(id, worker, ARGV[3])\n"
    "if holds ~= 1 then return holds end\n"
    "if ARGV[4] == 'lost' then\n"
    "  if owner then return 0 end\n"
    "  if redis.call('HGET', job, 'ew_worker') ~= worker and\n"
    "    redis.call('PTTL', 'rrq:health:worker:' .. worker) > 0 then return 0 end\n"
    "  if redis.call('ZSCORE', KEYS[1], id) then return 0 end\n"
    "end\n"
    "local set, drop = {'status', status, 'current_retries', ARGV[9]}, {}\n"
    "local function add(name, value)\n"
    "  set[#set + 1] = name\n"
    "  set[#set + 1] = value\n"
    "end\n"
    "if ARGV[10] ~= '0' then add('ew_lost', ARGV[10]) else drop[#drop + 1] = 'ew_lost' end\n"
    "if ARGV[12] ~= '' then add('last_error', ARGV[12]) end\n"
    "if ARGV[13] ~= '' then add('ew_error', ARGV[13])\n"
    "elseif ARGV[12] ~= '' then drop[#drop + 1] = 'ew_error' end\n"
    "local event\n"
    "if status == 'PENDING' or status == 'RETRYING' then\n"
    "  redis.call('ZADD', KEYS[1], ARGV[6], id)\n"
    "  add('next_scheduled_run_time', ARGV[7])\n"
    "  if status == 'PENDING' then\n"
    "    drop[#drop + 1] = 'start_time'\n"
    "    drop[#drop + 1] = 'worker_id'\n"
    "  end\n"
    "else\n"
    "  event = 'cancelled'\n"
    "  add('completion_time', ARGV[8])\n"
    "  drop[#drop + 1] = 'ew_cancel'\n"
    "  if status == 'COMPLETED' then\n"
    "    event = 'completed'\n"
    "    add('result', ARGV[11])\n"
    "  elseif status == 'FAILED' then\n"
    "    event = 'failed'\n"
    "    redis.call('LPUSH', KEYS[2], id)\n"
    "    add('ew_dlq', ARGV[16])\n"
    "  end\n"
    "end\n"
    "redis.call('HSET', job, unpack(set))\n"
    "if #drop > 0 then redis.call('HDEL', job, unpack(drop)) end\n"
    "if event then\n"
    "  ended(id, status, event, ARGV[14])\n"
    "  release(id, ARGV[15])\n"
    "end\n"
    "redis.pcall('ZREM', 'rrq:active:jobs:' .. worker, id)\n"
    "redis.call('DEL', lock)\n"
    "return 1\n";

/*
 * RENEW. ARGV worker, its record ('': it ends), life of that in ms, lease in ms, then ids and epochs. Returns a number
 * for each lease: 0 held, 1 held and to be cancelled, 2 gone. A lock that has run out is taken again, unless the job is
 * queued: then somebody has recovered it.
 */
static const char renew[] = HELD
    "local worker, states = ARGV[1], {}\n"
    "local health = 'rrq:health:worker:' .. worker\n"
    "if ARGV[2] == '' then\n"
    "  redis.call('DEL', health)\n"
    "  if redis.pcall('ZCARD', 'rrq:active:jobs:' .. worker) == 0 then redis.pcall('SREM', 'ew:workers', worker) end\n"
    "else\n"
    "  redis.call('SET', health, ARGV[2], 'PX', ARGV[3])\n"
    "end\n"
    "local function state_of(id, epoch)\n"
    "  local holds, owner = held(id, worker, epoch)\n"
    "  if holds ~= 1 then return 2 end\n"
    "  local is, lock = redis.call('HMGET', 'rrq:job:' .. id, 'queue_name', 'ew_cancel'), 'rrq:lock:job:' .. id\n"
    "  if owner then\n"
    "    redis.call('PEXPIRE', lock, ARGV[4])\n"
    "  else\n"
    "    if is[1] and type(redis.pcall('ZSCORE', is[1], id)) == 'string' then return 2 end\n"
    "    redis.call('SET', lock, worker, 'PX', ARGV[4])\n"
    "  end\n"
    "  return is[2] == '1' and 1 or 0\n"
    "end\n"
    "for i = 5, #ARGV, 2 do\n"
    "  if redis.call('TYPE', 'rrq:job:' .. ARGV[i]).ok == 'hash' then\n"
    "    states[#states + 1] = state_of(ARGV[i], ARGV[i + 1])\n"
    "  else\n"
    "    states[#states + 1] = 2\n"
    "  end\n"
    "end\n"
    "return states\n";

/*
 * CHUNKS. ARGV id, worker, epoch, how many and how many bytes may be kept, then the chunks. Returns as CHANGE. A stream
 * that is left of an earlier job of the same id is replaced.
 */
static const char chunks[] = HELD
    "local id, most, bytes_most = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "local job, stream = 'rrq:job:' .. id, 'ew:chunks:' .. id\n"
    "local holds = held(id, ARGV[2], ARGV[3])\n"
    "if holds ~= 1 then return holds end\n"
    "local is = redis.call('HMGET', job, 'ew_chunks', 'ew_chunk_bytes')\n"
    "local seq, bytes = tonumber(is[1] or 0) or 0, tonumber(is[2] or 0) or 0\n"
    "for i = 6, #ARGV do\n"
    "  local key = '0-' .. string.format('%.0f', seq + 1)\n"
    "  local said = redis.pcall('XADD', stream, key, 'chunk', ARGV[i])\n"
    "  if type(said) == 'table' and said.err then\n"
    "    redis.call('DEL', stream)\n"
    "    redis.call('XADD', stream, key, 'chunk', ARGV[i])\n"
    "    bytes = 0\n"
    "  end\n"
    "  seq, bytes = seq + 1, bytes + string.len(ARGV[i])\n"
    "end\n"
    "local n = redis.call('XLEN', stream)\n"
    "while n > 0 and (n > most or bytes > bytes_most) do\n"
    "  local old = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]\n"
    "  redis.call('XDEL', stream, old[1])\n"
    "  n, bytes = n - 1, bytes - string.len(old[2][2])\n"
    "end\n"
    "redis.call('HSET', job, 'ew_chunks', string.format('%.0f', seq), 'ew_chunk_bytes', string.format('%.0f', bytes))\n"
    "return 1\n";

/* GET with chunks. KEYS hash, stream; ARGV the first id that is wanted, how many. */
static const char get[] =
    "local chunks = redis.pcall('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])\n"
    "if chunks.err then chunks = {} end\n"
    "return {redis.call('HGETALL', KEYS[1]), chunks}\n";

/*
 * CANCEL. ARGV id, now. Returns 1 it is, 2 its worker is told, 3 it had ended, -1 no such job, -2 it is with a worker
 * of RRQ; and its status.
 */
static const char cancel[] = ENDED
    "local id, job = ARGV[1], 'rrq:job:' .. ARGV[1]\n"
    "local is = redis.call('HMGET', job, 'status', 'queue_name', 'worker_id', 'ew_worker', 'job_unique_key',\n"
    "  'ew_result_ttl_ms', 'result_ttl_seconds')\n"
    "local status = is[1]\n"
    "if not status then return {-1, ''} end\n"
    "if status == 'ACTIVE' then\n"
    "  if is[3] ~= is[4] then return {-2, status} end\n"
    "  redis.call('SET', 'ew:cancel', id, 'PX', 60000)\n"
    "  redis.call('HSET', job, 'ew_cancel', '1')\n"
    "  return {2, status}\n"
    "end\n"
    "if status ~= 'PENDING' and status ~= 'RETRYING' then return {3, status} end\n"
    "local ttl = tonumber(is[6]) or (tonumber(is[7]) or 86400) * 1000\n"
    "ttl = string.format('%.0f', math.max(0, math.min(ttl, 315360000000)))\n"
    "if is[2] then redis.pcall('ZREM', is[2], id) end\n"
    "redis.call('HSET', job, 'status', 'CANCELLED', 'completion_time', ARGV[2])\n"
    "redis.call('HDEL', job, 'ew_cancel')\n"
    "ended(id, 'CANCELLED', 'cancelled', ttl)\n"
    "release(id, is[5])\n"
    "return {1, 'CANCELLED'}\n";

/* REQUEUE. ARGV id, key of the queue or '', score, when that is. Returns 1, 0 it is no dead letter, -1 no such job. */
static const char requeue[] =
    "local id, job = ARGV[1], 'rrq:job:' .. ARGV[1]\n"
    "local is = redis.call('HMGET', job, 'status', 'queue_name', 'ew_dlq', 'dlq_name')\n"
    "if not is[1] then return -1 end\n"
    "if is[1] ~= 'FAILED' and is[1] ~= 'CANCELLED' then return 0 end\n"
    "local queue, dlq = ARGV[2], is[3] or is[4] or 'default'\n"
    "if queue == '' then queue = is[2] or 'rrq:queue:default' end\n"
    "if string.sub(dlq, 1, 8) ~= 'rrq:dlq:' then dlq = 'rrq:dlq:' .. dlq end\n"
    "redis.call('ZADD', queue, ARGV[3], id)\n"
    "redis.pcall('LREM', dlq, 0, id)\n"
    "redis.call('HSET', job, 'status', 'PENDING', 'queue_name', queue, 'current_retries', '0',\n"
    "  'next_scheduled_run_time', ARGV[4])\n"
    "redis.call('HDEL', job, 'completion_time', 'start_time', 'worker_id', 'ew_cancel', 'ew_lost', 'ew_dlq')\n"
    "for _, key in ipairs({job, 'rrq:events:job:' .. id, 'ew:chunks:' .. id}) do redis.call('PERSIST', key) end\n"
    "return 1\n";

/*
 * EXPIRED. ARGV how many, now in ms, when that is, then workers. Returns for each lost job its id and what a decision
 * needs of its hash. What is no running job of that worker is cleared away; one that its worker, dead since, had marked
 * as waiting but not yet queued, is queued. A worker of ours has lost a job when its lease is gone; one of RRQ's when
 * it says nothing any more, too.
 */
static const char lost[] = LOCK
    "local max, found, looked = tonumber(ARGV[1]), {}, 0\n"
    "local fields = {'status', 'worker_id', 'ew_worker', 'queue_name', 'function_name', 'enqueue_time', 'start_time',\n"
    "  'next_scheduled_run_time', 'ew_epoch', 'current_retries', 'max_retries', 'ew_lost', 'ew_cancel', 'dlq_name',\n"
    "  'job_unique_key', 'job_timeout_seconds', 'ew_timeout_ms', 'result_ttl_seconds', 'ew_result_ttl_ms',\n"
    "  'ew_chunks'}\n"
    "local function look(worker, active, alive, id)\n"
    "  local job = 'rrq:job:' .. id\n"
    "  local is = redis.pcall('HMGET', job, unpack(fields))\n"
    "  if is.err then return true end\n"
    "  local status, queue = is[1], is[4] or 'rrq:queue:default'\n"
    "  local owner = owner_of(id)\n"
    "  if status == 'ACTIVE' and is[2] == worker then\n"
    "    if owner or (alive and is[3] ~= worker) then return true end\n"
    "    if redis.pcall('ZSCORE', queue, id) then return true end\n"
    "    local pairs = {}\n"
    "    for i, name in ipairs(fields) do\n"
    "      if is[i] then\n"
    "        pairs[#pairs + 1] = name\n"
    "        pairs[#pairs + 1] = is[i]\n"
    "      end\n"
    "    end\n"
    "    found[#found + 1] = {id, pairs}\n"
    "    return true\n"
    "  end\n"
    "  if owner == worker then return true end\n"
    "  if status == 'PENDING' or status == 'RETRYING' then\n"
    "    if alive or owner then return true end\n"
    "    if not redis.pcall('ZSCORE', queue, id) then\n"
    "      redis.call('ZADD', queue, ARGV[2], id)\n"
    "      redis.call('HSET', job, 'next_scheduled_run_time', ARGV[3])\n"
    "    end\n"
    "  end\n"
    "  redis.call('ZREM', active, id)\n"
    "  return false\n"
    "end\n"
    "for i = 4, #ARGV do\n"
    "  local worker, at = ARGV[i], 0\n"
    "  local active = 'rrq:active:jobs:' .. worker\n"
    "  local alive = redis.call('PTTL', 'rrq:health:worker:' .. worker) > 0\n"
    "  while #found < max and looked < 20000 do\n"
    "    local ids = redis.pcall('ZRANGE', active, at, at + 255)\n"
    "    if ids.err or #ids == 0 then break end\n"
    "    for k = 1, #ids do\n"
    "      looked = looked + 1\n"
    "      if look(worker, active, alive, ids[k]) then at = at + 1 end\n"
    "      if #found >= max then break end\n"
    "    end\n"
    "  end\n"
    "  if not alive and redis.call('EXISTS', active) == 0 then redis.pcall('SREM', 'ew:workers', worker) end\n"
    "end\n"
    "return found\n";

/* SWEEP. KEYS a list of dead letters; ARGV how many to look at, from its old end. Removes those that are no more. */
static const char sweep[] =
    "local ids, n = redis.pcall('LRANGE', KEYS[1], '-' .. ARGV[1], -1), 0\n"
    "if ids.err then return 0 end\n"
    "for i = #ids, 1, -1 do\n"
    "  if redis.call('EXISTS', 'rrq:job:' .. ids[i]) == 0 then n = n + redis.call('LREM', KEYS[1], -1, ids[i]) end\n"
    "end\n"
    "return n\n";

/* clang-format on */

const char *const ew__redis_scripts[EW__SCRIPTS] = {
    [EW__SCRIPT_ENQUEUE] = enqueue, [EW__SCRIPT_CLAIM] = claim,     [EW__SCRIPT_CHANGE] = change,
    [EW__SCRIPT_RENEW] = renew,     [EW__SCRIPT_CHUNKS] = chunks,   [EW__SCRIPT_GET] = get,
    [EW__SCRIPT_CANCEL] = cancel,   [EW__SCRIPT_REQUEUE] = requeue, [EW__SCRIPT_LOST] = lost,
    [EW__SCRIPT_SWEEP] = sweep,
};
