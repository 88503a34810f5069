-- When this node and its peer last read each other's log: a silence is counted from
-- where it began, over any restart. Node-local, good to ten minutes.
CREATE TABLE sync_contact (
  peer       TEXT PRIMARY KEY,
  fetched_at INTEGER NOT NULL,  -- until the first success: since when the peer is known
  offered_at INTEGER NOT NULL,  -- likewise
  told_at    INTEGER            -- when the owner was last told of a silence that lasts; null: none does
) STRICT, WITHOUT ROWID;
