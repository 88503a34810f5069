-- Who may use the assistant. The authority writes this table; any other node holds
-- the copy that came with the directory.
CREATE TABLE users (
  id               TEXT PRIMARY KEY CHECK (length(id) = 26),  -- ULID, the same on both nodes; the owner of rows in the other files
  email            TEXT NOT NULL UNIQUE,                      -- composed (NFC), trimmed, lower case
  password_hash    TEXT NOT NULL,                             -- argon2id in its PHC form: cost, salt and key
  role             TEXT NOT NULL CHECK (role IN ('admin', 'user')),
  password_version INTEGER NOT NULL DEFAULT 1 CHECK (password_version > 0),  -- one more with each new password
  disabled_at      INTEGER,                                   -- a soft ban: what the account owns stays
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL
) STRICT;

-- Logins of this node; they never cross to the other.
CREATE TABLE sessions (
  token_hash       BLOB PRIMARY KEY CHECK (length(token_hash) = 32),  -- SHA-256; the token itself is in the client's hands only
  user_id          TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  password_version INTEGER NOT NULL,                          -- the one the login was checked against; no other is good
  created_at       INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Which version of the accounts this file holds.
CREATE TABLE directory (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  generation TEXT NOT NULL                                    -- "<incarnation>/<n>": n counts within one start of the authority
) STRICT;
