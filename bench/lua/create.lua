-- Each request makes one todo; the same body for every contender.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")

local path = os.getenv("BENCH_PATHS")
local n = 0

request = function()
  n = n + 1
  return wrk.format(nil, path, nil,
    '{"content":"fetch oat milk and eggs on the way home, then ring about invoice ' .. n ..
    '","due_at":"2026-12-01T09:00:00Z"}')
end
