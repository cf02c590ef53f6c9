-- Takes all keys for a claim, or a place in their queues.
-- ARGV: prefix, claim, lease (ms), how long a place in a queue lasts (ms; 0: do not queue), then key and mode ('x' or 's')
local prefix, claim, lease, place = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function keep(key, time)
  if redis.call('PTTL', key) < time then redis.call('PEXPIRE', key, time) end
end

local function conflict(mode, other)
  return mode == 'x' or other == 'x'
end

local free = true
for i = 5, #ARGV, 2 do
  local mode, holders, queue = ARGV[i + 1], prefix .. 'h:' .. ARGV[i], prefix .. 'q:' .. ARGV[i]
  for _, holder in ipairs(redis.call('SMEMBERS', holders)) do
    if redis.call('EXISTS', prefix .. 'c:' .. holder:sub(2)) == 0 then
      redis.call('SREM', holders, holder)
    elseif conflict(mode, holder:sub(1, 1)) then
      free = false
    end
  end
  for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, -1)) do
    local other = waiter:sub(2)
    if other == claim then break end
    if redis.call('EXISTS', prefix .. 'w:' .. other) == 0 then
      redis.call('ZREM', queue, waiter)
    elseif conflict(mode, waiter:sub(1, 1)) then
      free = false
    end
  end
end

if not free then
  if place > 0 then
    -- One number for all keys, so that no two requests wait for each other.
    local ticket
    if redis.call('EXISTS', prefix .. 'w:' .. claim) == 0 then ticket = redis.call('INCR', prefix .. 'ticket') end
    redis.call('SET', prefix .. 'w:' .. claim, '', 'PX', place)
    for i = 5, #ARGV, 2 do
      local queue = prefix .. 'q:' .. ARGV[i]
      if ticket then redis.call('ZADD', queue, ticket, ARGV[i + 1] .. claim) end
      keep(queue, place * 2)
    end
  end
  return false
end

for i = 5, #ARGV, 2 do
  redis.call('ZREM', prefix .. 'q:' .. ARGV[i], ARGV[i + 1] .. claim)
  local holders = prefix .. 'h:' .. ARGV[i]
  redis.call('SADD', holders, ARGV[i + 1] .. claim)
  keep(holders, lease * 2)
end
redis.call('DEL', prefix .. 'w:' .. claim)
redis.call('SET', prefix .. 'c:' .. claim, '', 'PX', lease)
local fence = redis.call('INCR', prefix .. 'fence')
if fence == 1 then
  -- A server that forgot goes on above its old numbers.
  local now = redis.call('TIME')
  fence = now[1] * 1000000 + now[2]
  redis.call('SET', prefix .. 'fence', string.format('%.0f', fence))
end
return fence
