-- Prolongs a claim that has not ended. ARGV: prefix, claim, lease (ms), how long its keys stay (ms), then these keys
local prefix = ARGV[1]
if redis.call('PEXPIRE', prefix .. 'c:' .. ARGV[2], ARGV[3]) == 0 then return 0 end
for i = 5, #ARGV do
  local key = prefix .. ARGV[i]
  if redis.call('PTTL', key) < tonumber(ARGV[4]) then redis.call('PEXPIRE', key, ARGV[4]) end
end
return 1
