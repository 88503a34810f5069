-- Where push reaches people: one row for each installation of the app. The cloud
-- holds the set; the node at home copies it whole.
CREATE TABLE push_tokens (
  token         TEXT PRIMARY KEY CHECK (length(token) BETWEEN 1 AND 4096),  -- the push service's address of the device; whoever has it can be rung
  platform      TEXT NOT NULL CHECK (platform IN ('android', 'ios', 'web')),
  device_id     TEXT NOT NULL UNIQUE CHECK (length(device_id) BETWEEN 1 AND 128),  -- of the installation, made by the app; the last to register has it
  owner         TEXT NOT NULL,
  registration  BLOB NOT NULL UNIQUE CHECK (length(registration) = 16),     -- random, another with each registration: what is said of an old one does not touch a newer
  registered_at INTEGER NOT NULL,              -- since when this token, device and owner belong together
  updated_at    INTEGER NOT NULL,              -- of the last registration; of two for one device or token the larger wins
  pending_at    INTEGER                        -- registered here, and the cloud does not know it yet; null at the cloud
) STRICT;
CREATE INDEX push_tokens_owner ON push_tokens (owner, device_id);
CREATE INDEX push_tokens_pending ON push_tokens (pending_at) WHERE pending_at IS NOT NULL;

-- Devices that were to ring no more. A registration that is not younger stays out,
-- from whichever node it comes. At home the row goes once the cloud has it.
CREATE TABLE push_forgotten (
  owner        TEXT NOT NULL,                  -- whose registrations; empty: everybody's, since the device was the owner's to forget
  device_id    TEXT NOT NULL,
  forgotten_at INTEGER NOT NULL,
  PRIMARY KEY (owner, device_id)
) STRICT, WITHOUT ROWID;

-- Registrations that the push service called dead: none of them comes back, from
-- whichever node. At home the row goes once the cloud has it.
CREATE TABLE push_unregistered (
  registration BLOB PRIMARY KEY,
  token_sha256 TEXT NOT NULL,                  -- hexadecimal
  at           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which state of the cloud's set is here. No row: none, or not surely the newest.
CREATE TABLE push_tokens_held (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  generation TEXT NOT NULL
) STRICT;

-- What is to be told to people, written with what it tells of. Node-local: the
-- other node learns of a delivery by its facts. What is done goes after 90 days.
CREATE TABLE delivery_intents (
  id              TEXT PRIMARY KEY,
  fire_id         TEXT NOT NULL,
  kind            TEXT NOT NULL,               -- ring
  owner           TEXT NOT NULL,
  title           TEXT NOT NULL,
  body            TEXT NOT NULL,
  notes           TEXT NOT NULL,               -- JSON array of lines for a person
  zone            TEXT NOT NULL,               -- IANA, in which times are told; empty: UTC
  due_at          INTEGER NOT NULL,
  ttl             INTEGER NOT NULL,            -- ms; it is tried so long from due_at, or from created_at if that is later
  created_at      INTEGER NOT NULL,
  state           TEXT NOT NULL DEFAULT 'prepared' CHECK (state IN (
                    'prepared',                -- nothing was sent
                    'sending',                 -- committed before the call: it may have been sent
                    'accepted',                -- a service took it, and nothing remains to be tried
                    'failed_retryable',        -- some target is to be tried (again) at next_attempt_at
                    'failed_terminal',         -- dead, for the reason in code
                    'unknown')),               -- dead, and nobody knows whether a service took it
  channel         TEXT,                        -- the last one tried
  code            TEXT,                        -- why it has not been accepted
  attempts        INTEGER NOT NULL DEFAULT 0,  -- how often it was taken up; numbers the attempts
  next_attempt_at INTEGER,                     -- null: done
  lease_token     BLOB,
  lease_epoch     INTEGER NOT NULL DEFAULT 0,
  lease_until     INTEGER NOT NULL DEFAULT 0,
  UNIQUE (fire_id, kind)
) STRICT;
CREATE INDEX delivery_intents_due ON delivery_intents (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX delivery_intents_done ON delivery_intents (created_at) WHERE next_attempt_at IS NULL;
CREATE INDEX delivery_intents_dead ON delivery_intents (created_at) WHERE state IN ('failed_terminal', 'unknown');

-- How it stands with each device or chat that was tried.
CREATE TABLE delivery_targets (
  intent_id       TEXT NOT NULL REFERENCES delivery_intents (id) ON DELETE CASCADE,
  channel         TEXT NOT NULL,
  place           TEXT NOT NULL,               -- the device's id, or the chat's number
  registration    BLOB,                        -- the one last tried, for a device: a newer one is another chance
  state           TEXT NOT NULL CHECK (state IN ('sending', 'accepted', 'failed_retryable', 'failed_terminal')),
  attempts        INTEGER NOT NULL,
  next_attempt_at INTEGER,                     -- for failed_retryable
  message_id      TEXT,                        -- the service's, once accepted
  code            TEXT,                        -- the service's word for the last failure
  doubt           TEXT CHECK (doubt IN (       -- why one may have been taken though none was accepted; what is sent after that says so
                    'restart',                 -- the node died before it wrote what came of it
                    'unanswered')),            -- no answer came, or none that says it was refused
  PRIMARY KEY (intent_id, channel, place)
) STRICT, WITHOUT ROWID;

-- One row for each change of an intent: they form a path from prepared.
CREATE TABLE delivery_events (
  id         INTEGER PRIMARY KEY,              -- in order
  intent_id  TEXT NOT NULL REFERENCES delivery_intents (id) ON DELETE CASCADE,
  from_state TEXT NOT NULL,
  to_state   TEXT NOT NULL,
  channel    TEXT,
  code       TEXT,
  at         INTEGER NOT NULL
) STRICT;
CREATE INDEX delivery_events_intent ON delivery_events (intent_id);

-- Channels that asked for a pause: no call goes through one before until.
CREATE TABLE delivery_gates (
  channel  TEXT NOT NULL,
  place    TEXT NOT NULL,                      -- the chat that is throttled; empty: all of the channel
  until    INTEGER NOT NULL,
  failures INTEGER NOT NULL,                   -- pauses in a row; a success forgets them
  PRIMARY KEY (channel, place)
) STRICT, WITHOUT ROWID;
