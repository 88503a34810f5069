-- Whose file this is: a copy that is opened under another name is refused.
ALTER TABLE sync_state ADD COLUMN node TEXT;           -- null: not said yet
ALTER TABLE sync_state ADD COLUMN origin INTEGER;
ALTER TABLE sync_state ADD COLUMN blanked INTEGER NOT NULL DEFAULT 0;      -- tombstones up to this seq have lost their text

-- A row that had two keys keeps the smaller one. The other stays as a tombstone that
-- says where it leads: to the row of this uid.
ALTER TABLE todos ADD COLUMN alias_of BLOB CHECK (length(alias_of) = 16);
ALTER TABLE settings ADD COLUMN alias_of BLOB CHECK (length(alias_of) = 16);
ALTER TABLE scheduled_messages ADD COLUMN alias_of BLOB CHECK (length(alias_of) = 16);

-- What was deleted, in the order this node learned of it.
CREATE INDEX todos_deleted ON todos (seq) WHERE deleted_at IS NOT NULL;
CREATE INDEX settings_deleted ON settings (seq) WHERE deleted_at IS NOT NULL;
CREATE INDEX scheduled_messages_deleted ON scheduled_messages (seq) WHERE deleted_at IS NOT NULL;

-- Rows with fields that this version did not know when they came: the next one may.
CREATE INDEX todos_extra ON todos (uid) WHERE extra IS NOT NULL;
CREATE INDEX settings_extra ON settings (uid) WHERE extra IS NOT NULL;
CREATE INDEX scheduled_messages_extra ON scheduled_messages (uid) WHERE extra IS NOT NULL;

-- Entries that are set aside, so that all others go on: what came and could not be
-- taken, and rows of this file that cannot be sent.
CREATE TABLE sync_quarantine (
  tbl        TEXT NOT NULL,
  uid        BLOB NOT NULL CHECK (length(uid) = 16),  -- the row's or fact's; of one that names none, made from its bytes
  kind       TEXT NOT NULL CHECK (kind IN (
               'malformed',                  -- not an entry of this protocol, or of a table that this version does not know
               'refused',                    -- this file does not take it
               'id_reuse',                   -- its key belongs to another row here, until it comes under another key
               'held_delete',                -- one of more deletes at once than a person is thought to mean
               'unencodable')),              -- this file's own: it cannot be written as JSON, or the peer takes it in no size
  reason     TEXT NOT NULL,                  -- for people; names members, never what they hold
  origin     INTEGER,
  id         INTEGER,
  owner      TEXT NOT NULL,
  updated_at INTEGER NOT NULL,               -- the entry's stamp; 0: it has none
  entry      BLOB NOT NULL,                  -- as it came; empty for this file's own
  at         INTEGER NOT NULL,               -- when it was set aside
  retry_at   INTEGER NOT NULL,               -- when it is tried again
  versions   TEXT NOT NULL,                  -- of both nodes at the last try: another pair is another chance
  PRIMARY KEY (tbl, uid)
) STRICT, WITHOUT ROWID;

-- How many rows the peer has deleted here, of the last hour: too many are held.
CREATE TABLE sync_deletes (
  minute INTEGER PRIMARY KEY,                -- Unix minutes
  rows   INTEGER NOT NULL
) STRICT;

-- How much of this log the peer had, day by day: what it has had for a month may
-- lose the text of what was deleted.
CREATE TABLE sync_marks (
  day INTEGER PRIMARY KEY,                   -- Unix days
  seq INTEGER NOT NULL
) STRICT;

CREATE INDEX facts_conflicts ON facts (owner, at, uid) WHERE kind = 'conflict';
CREATE INDEX facts_at ON facts (at);
