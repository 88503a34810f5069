-- Reads the paths in BENCH_PATHS (blanks between them) in turn, for ever.
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")

local requests = {}
local n = 0

init = function()
  for path in string.gmatch(os.getenv("BENCH_PATHS"), "%S+") do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

request = function()
  n = n % #requests + 1
  return requests[n]
end
