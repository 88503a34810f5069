-- How a person wants to be served, one row each, made by their first change.
CREATE TABLE settings (
  origin     INTEGER NOT NULL CHECK (origin IN (0, 1)),
  id         INTEGER NOT NULL CHECK (id > 0),
  uid        BLOB NOT NULL UNIQUE CHECK (length(uid) = 16),
  owner      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL DEFAULT 'legacy',
  deleted_at INTEGER,
  seq        INTEGER NOT NULL UNIQUE,
  seen       TEXT NOT NULL DEFAULT '{}',
  extra      TEXT,

  tz         TEXT,                             -- IANA; null: not chosen
  PRIMARY KEY (origin, id)
) STRICT;
CREATE INDEX settings_owner ON settings (owner) WHERE deleted_at IS NULL;
