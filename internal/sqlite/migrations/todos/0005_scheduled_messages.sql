-- What is to be said at a time. One of trigger_at, cron_expr and rrule is set.
CREATE TABLE scheduled_messages (
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

  content    TEXT NOT NULL,
  action     TEXT NOT NULL DEFAULT 'notify',   -- notify | ask | skill; kept as it came when this version knows less
  args       TEXT,                             -- JSON: the skill and its arguments
  trigger_at INTEGER,
  cron_expr  TEXT,
  rrule      TEXT,                             -- RFC 5545, with its DTSTART line
  from_completion INTEGER NOT NULL DEFAULT 0 CHECK (from_completion IN (0, 1)),
  tz         TEXT,                             -- IANA; null: the owner's
  tz_mode    TEXT NOT NULL DEFAULT 'fixed',    -- fixed | follows_me
  enabled    INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  nag        TEXT,                             -- JSON: {every, max, double}
  must_ring  INTEGER NOT NULL DEFAULT 0 CHECK (must_ring IN (0, 1)),
  schedule_effective_from INTEGER,             -- occurrences up to this instant belong to an older schedule

  next_fire_at INTEGER,                        -- node-local, derived: null when it will not ring again
  PRIMARY KEY (origin, id)
) STRICT;
CREATE INDEX scheduled_messages_listed ON scheduled_messages (owner, created_at, origin, id) WHERE deleted_at IS NULL;
CREATE INDEX scheduled_messages_due ON scheduled_messages (next_fire_at, origin, id, owner) WHERE next_fire_at IS NOT NULL;

-- Which occurrences of a reminder rang, and under which schedule; whoever tells of
-- one, and whether or not the reminder has come yet. A body that is no JSON is in
-- facts and not here.
CREATE INDEX facts_fired ON facts (body ->> '$.reminder', body ->> '$.schedule_hash', CAST(body ->> '$.due_at' AS INTEGER))
  WHERE kind = 'fired' AND json_valid(body);
