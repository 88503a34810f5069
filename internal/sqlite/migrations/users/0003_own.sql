-- 1: the accounts are this node's own, and another may not know all of them.
ALTER TABLE directory ADD COLUMN own INTEGER NOT NULL DEFAULT 0 CHECK (own IN (0, 1));
