-- Whose a configured chat is: the first admin's at the moment when it was first asked for.
-- Pairing may bring an admin who is older, and the chat is still of whom it was.
CREATE TABLE push_chats (
  chat  TEXT PRIMARY KEY,
  owner TEXT NOT NULL
) STRICT;
