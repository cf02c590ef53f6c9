-- Ends a record. ARGV: prefix, record, ticket ('' to settle one whose outcome is unknown), 'done', 'not run' or
-- 'unknown', result. Says whether it did.
local prefix, ticket = ARGV[1], ARGV[3]
local record = prefix .. 'r:' .. ARGV[2]
local found = redis.call('HMGET', record, 'state', 'ticket', 'kept')
local state, owner, kept = found[1], found[2], found[3]
if not state then return 0 end
if ticket == '' then
  local dead = state == 'running' and redis.call('EXISTS', prefix .. 'c:' .. owner) == 0
  if state ~= 'unknown' and not dead then return 0 end
elseif owner ~= ticket then
  return 0
else
  redis.call('DEL', prefix .. 'c:' .. ticket)
end
if ARGV[4] == 'not run' then
  redis.call('DEL', record)
elseif ARGV[4] == 'unknown' then
  redis.call('HSET', record, 'state', 'unknown')
else
  redis.call('HSET', record, 'state', 'done', 'result', ARGV[5])
  redis.call('PEXPIRE', record, kept)
end
return 1
