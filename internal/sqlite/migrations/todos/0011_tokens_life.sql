-- Of which life of the cloud's log the set is that home holds. A set of another life may
-- lack what the cloud had before its database was lost or put back.
ALTER TABLE push_tokens_held ADD COLUMN life TEXT; -- null: of a version that did not say
