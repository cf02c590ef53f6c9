-- Ends a claim. ARGV: prefix, claim, then key by key what it holds ('h:…' or 'p:…') and as which member.
-- Says whether it had lasted until now.
local prefix, claim = ARGV[1], ARGV[2]
for i = 3, #ARGV, 2 do
  redis.call('SREM', prefix .. ARGV[i], ARGV[i + 1])
  if ARGV[i]:sub(1, 2) == 'h:' then redis.call('ZREM', prefix .. 'q:' .. ARGV[i]:sub(3), ARGV[i + 1]) end
end
redis.call('DEL', prefix .. 'w:' .. claim)
return redis.call('DEL', prefix .. 'c:' .. claim)
