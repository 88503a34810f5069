package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// stocked returns a folder of a pair whose cloud has n todos, and whose home has
// never run. Each size is made once.
func (b *bench) stocked(ctx context.Context, n int) (string, error) {
	if dir, ok := b.stocks[n]; ok {
		return dir, nil
	}
	fmt.Fprintf(b.progress, "  a cloud with %d todos\n", n)
	p, err := b.newPair("")
	if err != nil {
		return "", err
	}
	if err := p.cloud.enrol(ctx, p.cloud.at); err != nil {
		return "", err
	}
	if err := p.cloud.run(ctx); err != nil {
		return "", err
	}
	in, err := p.cloud.s.logIn()
	if err == nil {
		_, err = in.add(sentence(0))
	}
	if err := errors.Join(err, p.cloud.halt()); err != nil {
		return "", err
	}
	b.stocks[n] = p.dir
	return p.dir, p.cloud.multiply(ctx, n)
}

// abroad returns a folder of a pair whose home has n todos that its cloud, which has
// the account, has never seen.
func (b *bench) abroad(ctx context.Context, n int) (string, error) {
	if b.away != "" {
		return b.away, nil
	}
	fmt.Fprintf(b.progress, "  a home with %d todos\n", n)
	p, err := b.newPair("")
	if err != nil {
		return "", err
	}
	_, home, err := p.both(ctx) // for the account
	if err := errors.Join(err, p.cloud.halt()); err != nil {
		return "", errors.Join(err, p.end())
	}
	_, err = home.add(sentence(0))
	if err := errors.Join(err, p.home.halt()); err != nil {
		return "", err
	}
	b.away = p.dir
	return p.dir, p.home.multiply(ctx, n)
}

// multiply makes n todos of the one that a stopped node has. They differ in key,
// text and stamp, ten ms from one to the next, and are otherwise as the node wrote
// that one, whatever columns its version has: filling the file through the API takes
// longer than all that is measured.
func (n *node) multiply(ctx context.Context, todos int) (err error) {
	pool, err := sql.Open("sqlite", fileURL(n.todos(), "_pragma=synchronous(OFF)&_txlock=immediate&_pragma=foreign_keys(1)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	pool.SetMaxOpenConns(1)
	differs := map[string]string{
		"id": "id + ?1", "seq": "seq + ?1", "uid": "?2", "content": "?3",
		"created_at": "created_at - 10 * ?1", "updated_at": "updated_at - 10 * ?1",
		"seen": "replace(seen, CAST(updated_at AS TEXT), CAST(updated_at - 10 * ?1 AS TEXT))",
	}
	var columns, values []string
	rows, err := pool.QueryContext(ctx, `SELECT name FROM pragma_table_info('todos')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			return err
		}
		columns, values = append(columns, c), append(values, cmp.Or(differs[c], c))
	}
	if err := rows.Err(); err != nil {
		return err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing, after the commit
	one, err := tx.PrepareContext(ctx, `INSERT INTO todos (`+strings.Join(columns, ", ")+`) SELECT `+strings.Join(values, ", ")+` FROM todos WHERE rowid = 1`)
	if err != nil {
		return err
	}
	for i := 1; i < todos; i++ {
		if _, err := one.ExecContext(ctx, i, newUID(i), sentence(i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// newUID is one as nodes make them: the time, and then by chance.
func newUID(i int) []byte {
	var uid [16]byte
	binary.BigEndian.PutUint64(uid[:], uint64(time.Now().UnixMilli()-10*int64(i))<<16)
	_, _ = rand.Read(uid[6:])
	return uid[:]
}

// words are what todos are made of: enough of them, in any order, that a page of
// todos does not shrink more than people's own would.
var words = strings.Fields(`
	ask book bring buy call cancel check clean collect deliver draw drop email empty feed file find fix fold
	hang join lend mend move order pack paint pay phone pick plan plant post print read renew repair return
	send sew share sign sort sweep tidy visit wash water weigh write
	aunt baker bank bicycle bill birthday book bread butter camera candle carpet chair chess cinema clock coat
	coffee cousin curtain dentist doctor door drawer drill dress eggs engine envelope fence flowers flute fridge
	garage garden gift glasses grandmother guitar hammer heating holiday insurance invoice jacket kettle key kitchen
	ladder lamp landlord laundry lawyer letter library licence lunch map medicine milk mirror mower neighbour
	newspaper notebook oven parcel passport pension piano picture pillow plumber present printer radio recipe
	school shelf shoes soap sofa spare stairs station stove suitcase tax teacher tent theatre ticket tools towel
	train tyre umbrella uncle vase vet violin wallet watch window winter yard zip
	about after again all along before behind blue early every first for from green half home in large late
	left long near new next of old on other over quiet red right second seven small soon ten the three to
	today tomorrow two under until upstairs week white with without yellow`)

// sentence is the text of the todo of a number, the same for each contender and in
// each run: eight to fifteen words and the number.
func sentence(i int) string {
	r := mathrand.New(mathrand.NewPCG(uint64(i), 0))
	text := make([]string, 8+r.IntN(8))
	for k := range text {
		text[k] = words[r.IntN(len(words))]
	}
	return fmt.Sprintf("%s %d", strings.Join(text, " "), i)
}
