-- What people mean to do. The first columns are replication's (see package sync),
-- the same in each replicated table.
CREATE TABLE todos (
  origin     INTEGER NOT NULL CHECK (origin IN (0, 1)),  -- the node that made the row
  id         INTEGER NOT NULL CHECK (id > 0),            -- counted by that node
  uid        BLOB NOT NULL UNIQUE CHECK (length(uid) = 16),
  owner      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,                 -- with updated_by: the stamp; the larger one wins
  updated_by TEXT NOT NULL DEFAULT 'legacy',
  deleted_at INTEGER,                          -- a tombstone stays
  seq        INTEGER NOT NULL UNIQUE,          -- node-local: when this node learned of this version
  seen       TEXT NOT NULL DEFAULT '{}',       -- JSON: writer to the largest stamp of his within this version
  extra      TEXT,                             -- JSON: fields that a newer version made

  content    TEXT NOT NULL,
  due_at     INTEGER,
  due_on     TEXT,                             -- a day without a time, YYYY-MM-DD; never an instant
  tz         TEXT,                             -- the zone due_at was given in
  done       INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
  notes      TEXT NOT NULL DEFAULT '',
  remind     TEXT,                             -- minutes before due_at, or HH:MM on due_on; null is silent
  PRIMARY KEY (origin, id)
) STRICT;
CREATE INDEX todos_listed ON todos (owner, created_at, origin, id) WHERE deleted_at IS NULL;
