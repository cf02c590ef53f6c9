-- The generic cell rate algorithm. ARGV: key, interval × burst (µs), interval × cost (µs)
-- Returns whether it is allowed, and what is left of the window or how long to wait (µs).
local key, window, cost = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local start = tonumber(redis.call('GET', key) or now)
if start < now then start = now end
if start > now + window then start = now + window end
local next = start + cost
if next > now + window then return {0, next - now - window} end
if next > now then
  redis.call('SET', key, string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000))
end
return {1, now + window - next}
