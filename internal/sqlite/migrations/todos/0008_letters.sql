-- Letters carry to the other node what must cross once and act once: what is said
-- here and thought about there.

-- Those of this node. One stays 30 days after the reader has acked it, so that a
-- reader whose file was put back can be offered it again.
CREATE TABLE letters_sent (
  n        INTEGER PRIMARY KEY,      -- the order in which they were sent
  key      TEXT NOT NULL UNIQUE,     -- names the letter for ever
  owner    TEXT NOT NULL,            -- whose it is: the letters of one owner are applied in their order
  kind     TEXT NOT NULL,
  body     TEXT NOT NULL,            -- JSON
  acked_at INTEGER                   -- null: it waits
) STRICT;
CREATE INDEX letters_sent_waiting ON letters_sent (owner, n) WHERE acked_at IS NULL;
CREATE INDEX letters_sent_acked ON letters_sent (acked_at) WHERE acked_at IS NOT NULL;

-- The last letter that the reader has acked, by the first half of its key's SHA-256
-- in hexadecimal. A reader that does not know it was put back and has lost letters.
CREATE TABLE letters_reader (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  last TEXT NOT NULL
) STRICT;

-- What has come from the other node and acted, or was parked. These stay for ever,
-- as tombstones do: a sender that was put back to long ago offers what it had not
-- sent by then.
CREATE TABLE letters_taken (
  key BLOB PRIMARY KEY CHECK (length(key) = 16)  -- the first half of the key's SHA-256
) STRICT, WITHOUT ROWID;

-- Letters that cannot be applied, or, of those of this node, cannot be sent. All
-- others go on. They are kept for 30 days.
CREATE TABLE letters_parked (
  n         INTEGER PRIMARY KEY,
  key       TEXT NOT NULL,
  owner     TEXT NOT NULL,
  kind      TEXT NOT NULL,
  body      BLOB NOT NULL,           -- as it came; empty where it is too large to keep
  code      TEXT NOT NULL,           -- of the fault
  detail    TEXT NOT NULL,           -- for people; says nothing of what is in the body
  parked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX letters_parked_at ON letters_parked (parked_at);
