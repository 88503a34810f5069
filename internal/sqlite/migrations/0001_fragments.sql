-- The answer to each request that named an Idempotency-Key, written with its
-- effect, so that asking again is answered again and not done again.
CREATE TABLE idempotency (
  owner  TEXT NOT NULL,
  route  TEXT NOT NULL,              -- method and route pattern, such as "POST /v1/todos"
  key    TEXT NOT NULL,
  body   BLOB NOT NULL,              -- HMAC-SHA-256 of the canonical body: a guess at it proves nothing
  answer BLOB NOT NULL,              -- the whole answer as JSON: location, etag, body
  at     INTEGER NOT NULL,
  PRIMARY KEY (owner, route, key)
) STRICT;
CREATE INDEX idempotency_at ON idempotency (at);

-- Effects that reach this file from another: written in the transaction of the
-- change, so that a crash between the two files repeats the call and not the effect.
CREATE TABLE applied (
  effect_key TEXT PRIMARY KEY,
  answer     TEXT NOT NULL,
  at         INTEGER NOT NULL
) STRICT;
