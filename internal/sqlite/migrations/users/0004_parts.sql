-- Of an account that two nodes have, the newer password stays and the newer ban, each by
-- its own time; all else by updated_at, which is never before either. Of what was
-- written before this, only the last change has a time.
ALTER TABLE users ADD COLUMN password_at INTEGER NOT NULL DEFAULT 0;  -- when password_hash and password_version became what they are
ALTER TABLE users ADD COLUMN ban_at INTEGER NOT NULL DEFAULT 0;       -- when disabled_at did: of a ban, or of its end
UPDATE users SET password_at = updated_at, ban_at = updated_at;
