package sqlite

import "time"

// Now is the time by the file's clock, as a transaction that began at this moment
// would have it: for what is decided without one.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Millisecond) }
