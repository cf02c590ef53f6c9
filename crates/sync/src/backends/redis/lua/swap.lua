-- Compares the version of a cell and swaps its value.
-- ARGV: prefix, cell, expected version ('' for none), 'set' or 'delete', value
-- Returns {1, new version or ''} or {0, version, value} of what was found ('' for none).
local cell = ARGV[1] .. 'v:' .. ARGV[2]
local found = redis.call('HGET', cell, 'version') or ''
if found ~= ARGV[3] then return {0, found, redis.call('HGET', cell, 'value') or ''} end
if ARGV[4] == 'delete' then
  -- Its fence stays, or a late write would get through.
  redis.call('HDEL', cell, 'version', 'value')
  return {1, ''}
end
local version = redis.call('INCR', ARGV[1] .. 'version')
if version == 1 then
  local now = redis.call('TIME')
  version = now[1] * 1000000 + now[2]
  redis.call('SET', ARGV[1] .. 'version', string.format('%.0f', version))
end
version = string.format('%.0f', version)
redis.call('HSET', cell, 'version', version, 'value', ARGV[5])
return {1, version}
