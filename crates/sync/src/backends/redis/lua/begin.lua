-- Begins a record. ARGV: prefix, record, digest of the arguments, ticket, lease (ms), how long it is kept (ms)
-- Returns {what} or {'replay', result}.
local prefix, ticket, lease, kept = ARGV[1], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local record = prefix .. 'r:' .. ARGV[2]
local arguments = redis.call('HGET', record, 'arguments')
if not arguments then
  redis.call('HSET', record, 'arguments', ARGV[3], 'state', 'running', 'ticket', ticket, 'kept', kept)
  redis.call('PEXPIRE', record, math.max(kept, lease * 2))
  redis.call('SET', prefix .. 'c:' .. ticket, '', 'PX', lease)
  return {'first'}
end
if arguments ~= ARGV[3] then return {'other'} end
local state = redis.call('HGET', record, 'state')
if state == 'done' then return {'replay', redis.call('HGET', record, 'result')} end
if state == 'running' then
  if redis.call('EXISTS', prefix .. 'c:' .. redis.call('HGET', record, 'ticket')) == 1 then return {'running'} end
  redis.call('HSET', record, 'state', 'unknown')
end
return {'unknown'}
