package push

import (
	"time"

	"tandem/internal/sqlite"
)

// gatesTx returns until when each gate is shut.
func gatesTx(tx *sqlite.Tx) (map[spot]int64, error) {
	gates := map[spot]int64{}
	_, err := sqlite.All(tx, func(r sqlite.Row) (_ struct{}, err error) {
		var at spot
		var until int64
		err = r.Scan(&at.channel, &at.place, &until)
		gates[at] = until
		return struct{}{}, err
	}, `SELECT channel, place, until FROM delivery_gates WHERE until > ?`, tx.Millis())
	return gates, err
}

// shutTx lets no call through for as long as the service asked, or for a minute
// that doubles with each time in a row, and returns until when. Answers to calls
// that were under way together count as one time.
func shutTx(tx *sqlite.Tx, at spot, asked time.Duration) (int64, error) {
	type gate struct {
		until    int64
		failures int
	}
	g, _, err := sqlite.One(tx, func(r sqlite.Row) (g gate, err error) { return g, r.Scan(&g.until, &g.failures) },
		`SELECT until, failures FROM delivery_gates WHERE channel = ? AND place = ?`, at.channel, at.place)
	if err != nil {
		return 0, err
	}
	if g.until <= tx.Millis() {
		g.failures++
	}
	pause := asked
	if asked <= 0 {
		pause = spread(tx, doubling(firstPause, longestPause, g.failures))
	}
	g.until = max(g.until, tx.Now.Add(pause).UnixMilli())
	_, err = tx.Exec(`
		INSERT INTO delivery_gates (channel, place, until, failures)
		VALUES (?, ?, ?, ?)
		ON CONFLICT (channel, place) DO UPDATE SET until = excluded.until, failures = excluded.failures`,
		at.channel, at.place, g.until, g.failures)
	return g.until, err
}

// openTx forgets the pauses of a channel that took something. One that has begun
// since that call did lasts.
func openTx(tx *sqlite.Tx, at spot) error {
	_, err := tx.Exec(`DELETE FROM delivery_gates WHERE channel = ? AND place = ? AND until <= ?`, at.channel, at.place, tx.Millis())
	return err
}

// spread adds up to a quarter, so that what failed together does not come back
// together. It never shortens: the length is the least that was promised.
func spread(tx *sqlite.Tx, d time.Duration) time.Duration {
	return d + d/4*time.Duration(tx.Random(1)[0])/255
}
