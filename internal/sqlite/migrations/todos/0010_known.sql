-- From here on fetched_at and offered_at are successes alone, and 0 until the first.
-- known_at is since when the peer is known, or was parted from: until the first success
-- a silence is counted from there.
ALTER TABLE sync_contact ADD COLUMN known_at INTEGER NOT NULL DEFAULT 0;
UPDATE sync_contact SET known_at = min(fetched_at, offered_at);
