"""What the Redis queue does inside the server: Lua scripts, each of which is carried out whole or not at all.

`bodies` (hash: id -> head, line break, body) holds every job; all else holds only ids. An id stands either in `stream`
(new, or held by a consumer of the group), or in `delayed` (by the time at which it is due). `attempts` counts leases.
An attempt's number, the entry of the stream and the consumer together are the proof that a lease is still held.
"""

from __future__ import annotations

GROUP = "workers"
KEYS = (
    "stream", "bodies", "attempts", "delayed", "dead", "dead_bodies", "dead_order", "bytes", "markers",
)  # fmt: skip
"""In the order in which every script gets them."""

_PRELUDE = """
local STREAM, BODIES, ATTEMPTS, DELAYED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local DEAD, DEAD_BODIES, DEAD_ORDER, BYTES, MARKERS = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local GROUP = 'workers'
local FARTHEST_MS = 3600000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function enqueue(id)
  redis.call('XADD', STREAM, '*', 'id', id)
end

local function put(id, body)
  if redis.call('HSETNX', BODIES, id, body) == 1 then
    redis.call('INCRBY', BYTES, #body)
    enqueue(id)
  end
end

local function forget(id)
  local body = redis.call('HGET', BODIES, id)
  if body then redis.call('DECRBY', BYTES, #body) end
  redis.call('HDEL', BODIES, id)
  redis.call('HDEL', ATTEMPTS, id)
  return body
end

local function drop_entry(entry)
  redis.call('XACK', STREAM, GROUP, entry)
  redis.call('XDEL', STREAM, entry)
end

local function bury(id, problem, at_ms, whole)
  local attempts = tonumber(redis.call('HGET', ATTEMPTS, id) or '0')
  local body = forget(id)
  if not body then return end
  local head = string.sub(body, 1, string.find(body, '\\n', 1, true) - 1)
  local letter = {attempts = attempts, error = problem, at_ms = tonumber(at_ms), head = head, whole = whole}
  redis.call('HSET', DEAD, id, cjson.encode(letter))
  redis.call('ZADD', DEAD_ORDER, at_ms, id)
  if whole then redis.call('HSET', DEAD_BODIES, id, body) else redis.call('HDEL', DEAD_BODIES, id) end
end

local function held(entry, consumer, id, attempt)
  local pending = redis.call('XPENDING', STREAM, GROUP, entry, entry, 1)
  return #pending == 1 and pending[1][2] == consumer and redis.call('HGET', ATTEMPTS, id) == attempt
end
"""

PUT = (
    _PRELUDE
    + """
-- ARGV: jobs and bytes to free, wall clock, why, then id and body of each job
local jobs, bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local evicted = 0
local function evict(id)
  local size = redis.call('HSTRLEN', BODIES, id)
  bury(id, ARGV[4], ARGV[3], false)
  jobs, bytes, evicted = jobs - 1, bytes - size, evicted + 1
end
if jobs > 0 or bytes > 0 then
  local last = '0-0'
  local groups = redis.pcall('XINFO', 'GROUPS', STREAM)
  if not groups.err and #groups > 0 then
    for at = 1, #groups[1], 2 do
      if groups[1][at] == 'last-delivered-id' then last = groups[1][at + 1] end
    end
  end
  while jobs > 0 or bytes > 0 do
    local oldest = redis.call('XRANGE', STREAM, '(' .. last, '+', 'COUNT', 1)
    if #oldest == 0 then break end
    redis.call('XDEL', STREAM, oldest[1][1])
    evict(oldest[1][2][2])
  end
  while jobs > 0 or bytes > 0 do
    local soonest = redis.call('ZPOPMIN', DELAYED)
    if #soonest == 0 then break end
    evict(soonest[1])
  end
end
for at = 5, #ARGV, 2 do put(ARGV[at], ARGV[at + 1]) end
return evicted
"""
)

LEASE = (
    _PRELUDE
    + """
-- ARGV: consumer, count, lease in ms, most attempts, wall clock, cursor
local consumer, count, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local function due(from, to)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', DELAYED, from, to, 'LIMIT', 0, count)) do
    redis.call('ZREM', DELAYED, id)
    enqueue(id)
  end
end
due('-inf', now_ms())
due('(' .. string.format('%.0f', now_ms() + FARTHEST_MS), '+inf')  -- no delay is so long: the clock was set back
local found = {}
local function take(entry, id)
  local body = redis.call('HGET', BODIES, id)
  if not body then return drop_entry(entry) end
  local attempts = tonumber(redis.call('HGET', ATTEMPTS, id) or '0')
  if attempts >= most then
    drop_entry(entry)
    return bury(id, 'the lease ran out ' .. attempts .. ' times: whoever held it died or hung', ARGV[5], true)
  end
  redis.call('HINCRBY', ATTEMPTS, id, 1)
  found[#found + 1] = {entry, id, attempts + 1, body}
end
local claimed = redis.call('XAUTOCLAIM', STREAM, GROUP, consumer, ARGV[3], ARGV[6], 'COUNT', count)
for _, entry in ipairs(claimed[2]) do take(entry[1], entry[2][2]) end
if #found < count then
  local read = redis.call('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', count - #found, 'STREAMS', STREAM, '>')
  if read then
    for _, entry in ipairs(read[1][2]) do take(entry[1], entry[2][2]) end
  end
end
return {claimed[1], found}
"""
)

EXTEND = (
    _PRELUDE
    + """
-- ARGV: entry, consumer, id, attempt
if not held(ARGV[1], ARGV[2], ARGV[3], ARGV[4]) then return 0 end
redis.call('XCLAIM', STREAM, GROUP, ARGV[2], 0, ARGV[1], 'JUSTID')
return 1
"""
)

DONE = (
    _PRELUDE
    + """
-- KEYS[10]: results of the stream. ARGV: entry, consumer, id, attempt, field and result ('' for none), how long results
-- are kept in ms, marker ('' for none), then id and body of each job that follows
if not held(ARGV[1], ARGV[2], ARGV[3], ARGV[4]) then return 'lost' end
drop_entry(ARGV[1])
forget(ARGV[3])
if ARGV[5] ~= '' then
  if redis.call('HSETNX', KEYS[10], ARGV[5], ARGV[6]) == 0 then return 'duplicate' end
  redis.call('PEXPIRE', KEYS[10], ARGV[7])
end
if ARGV[8] ~= '' then redis.call('XADD', MARKERS, 'MAXLEN', '~', 10000, '*', 'marker', ARGV[8]) end
for at = 9, #ARGV, 2 do put(ARGV[at], ARGV[at + 1]) end
return 'done'
"""
)

FAIL = (
    _PRELUDE
    + """
-- ARGV: entry, consumer, id, attempt, delay in ms ('' for never), error, wall clock
if not held(ARGV[1], ARGV[2], ARGV[3], ARGV[4]) then return 0 end
drop_entry(ARGV[1])
if ARGV[5] == '' then
  bury(ARGV[3], ARGV[6], ARGV[7], true)
else
  redis.call('ZADD', DELAYED, now_ms() + math.min(tonumber(ARGV[5]), FARTHEST_MS), ARGV[3])
end
return 1
"""
)

RELEASE = (
    _PRELUDE
    + """
-- ARGV: entry, consumer, id, attempt
if not held(ARGV[1], ARGV[2], ARGV[3], ARGV[4]) then return 0 end
drop_entry(ARGV[1])
redis.call('HINCRBY', ATTEMPTS, ARGV[3], -1)
enqueue(ARGV[3])
return 1
"""
)

LEASED = (
    _PRELUDE
    + """
return redis.call('XPENDING', STREAM, GROUP)[1]
"""
)

RETRY = (
    _PRELUDE
    + """
-- ARGV: ids
local count = 0
for _, id in ipairs(ARGV) do
  local body = redis.call('HGET', DEAD_BODIES, id)
  if body then
    redis.call('HDEL', DEAD, id)
    redis.call('HDEL', DEAD_BODIES, id)
    redis.call('ZREM', DEAD_ORDER, id)
    put(id, body)
    count = count + 1
  end
end
return count
"""
)

PURGE = (
    _PRELUDE
    + """
-- ARGV: wall clock in ms before which letters go, seconds after which consumers that hold nothing go
local old = redis.call('ZRANGEBYSCORE', DEAD_ORDER, '-inf', '(' .. ARGV[1], 'LIMIT', 0, 1000)
for _, id in ipairs(old) do
  redis.call('HDEL', DEAD, id)
  redis.call('HDEL', DEAD_BODIES, id)
  redis.call('ZREM', DEAD_ORDER, id)
end
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', STREAM, GROUP)) do
  local of = {}
  for at = 1, #consumer, 2 do of[consumer[at]] = consumer[at + 1] end
  if of.pending == 0 and of.idle > tonumber(ARGV[2]) * 1000 then
    redis.call('XGROUP', 'DELCONSUMER', STREAM, GROUP, of.name)
  end
end
return #old
"""
)
