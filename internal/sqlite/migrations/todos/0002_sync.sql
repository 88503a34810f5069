-- Which life of the file this is. A cursor into another life is void.
CREATE TABLE sync_state (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  incarnation TEXT NOT NULL
) STRICT;

-- One token for each page of the log that was handed out. A reader that presents
-- a token which is not here has read another log, and begins again.
CREATE TABLE sync_tokens (
  n            INTEGER PRIMARY KEY,  -- in the order they were issued
  token        TEXT NOT NULL UNIQUE,
  seq          INTEGER NOT NULL,     -- the page ended here
  presented_at INTEGER               -- when a reader last came back with it
) STRICT;

-- How far this node has read the log of each peer, as that peer wrote it.
CREATE TABLE sync_cursors (
  peer   TEXT PRIMARY KEY,
  cursor TEXT NOT NULL
) STRICT;

-- What happened, told once and never changed: fired, attempt, accepted. A fire is
-- the fold of its facts from both nodes.
CREATE TABLE facts (
  uid     BLOB PRIMARY KEY,          -- hash of kind and natural key: the same event is the same fact
  seq     INTEGER NOT NULL UNIQUE,   -- this node's order
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,             -- the fire it is about
  owner   TEXT NOT NULL,
  node    TEXT NOT NULL,             -- who saw it happen
  at      INTEGER NOT NULL,
  body    TEXT NOT NULL              -- JSON
) STRICT, WITHOUT ROWID;
CREATE INDEX facts_subject ON facts (subject, at);
