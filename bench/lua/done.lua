-- One line for the bench to read, in microseconds and exact counts, instead of
-- the rounded text that wrk writes for people.
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'bench {"requests":%d,"micros":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d,"late":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write, e.timeout))
end
