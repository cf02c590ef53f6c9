-- Takes a permit for a claim. ARGV: prefix, claim, lease (ms), caller, limit
local prefix, claim, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local permits = prefix .. 'p:' .. ARGV[4]
local limit = tonumber(ARGV[5])
if redis.call('SCARD', permits) >= limit then
  for _, other in ipairs(redis.call('SMEMBERS', permits)) do
    if redis.call('EXISTS', prefix .. 'c:' .. other) == 0 then redis.call('SREM', permits, other) end
  end
  if redis.call('SCARD', permits) >= limit then return 0 end
end
redis.call('SADD', permits, claim)
if redis.call('PTTL', permits) < lease * 2 then redis.call('PEXPIRE', permits, lease * 2) end
redis.call('SET', prefix .. 'c:' .. claim, '', 'PX', lease)
return 1
