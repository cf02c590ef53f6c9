-- Writes a cell unless a higher fence was seen. ARGV: prefix, cell, fence, value
-- Returns {1, version} or {0, the fence that was seen}.
local cell = ARGV[1] .. 'v:' .. ARGV[2]
local seen = redis.call('HGET', cell, 'fence')
-- Both are below 2^53, where these numbers are exact.
if seen and tonumber(seen) > tonumber(ARGV[3]) then return {0, seen} end
local version = redis.call('INCR', ARGV[1] .. 'version')
if version == 1 then
  local now = redis.call('TIME')
  version = now[1] * 1000000 + now[2]
  redis.call('SET', ARGV[1] .. 'version', string.format('%.0f', version))
end
version = string.format('%.0f', version)
redis.call('HSET', cell, 'version', version, 'value', ARGV[4], 'fence', ARGV[3])
return {1, version}
