package link_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/sqlite"
	"tandem/internal/sync"
	"tandem/internal/sync/link"
)

// apart runs a test in a bubble with two nodes that hold forty rows and some facts
// alike, and a client whose steps the test makes.
func apart(t *testing.T, test func(t *testing.T, local, cloud *node, l *line, c *link.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		local, cloud := pair(t)
		l := newLine(cloud)
		c, _ := client(local, l, nil, nil)
		local.many(20, 0)
		cloud.many(20, 0)
		for i := range 5 {
			cloud.fact("fired", fmt.Sprint("f", i), "x")
		}
		rest(t, c)
		test(t, local, cloud, l, c)
	})
}

// rest has both nodes read each other's log to the end.
func rest(t *testing.T, c *link.Client) {
	t.Helper()
	must(t, c.Greet(t.Context()))
	for range 3 {
		for fetchPage(t, c) {
		}
		for more := true; more; {
			var err error
			more, err = c.OfferPage(t.Context())
			must(t, err)
		}
	}
	must(t, c.Greet(t.Context()))
}

func compared(t *testing.T, c *link.Client) string {
	t.Helper()
	r, err := c.Compare(t.Context())
	must(t, err)
	equal(t, "what the status says", c.Status().Compared.Line, r.Line)
	return fmt.Sprintf("%d differing, %d repaired, %d explained, %d lasting", r.Differing, r.Repaired, r.Explained, r.Lasting)
}

// sameTables compares what lies in the files, whether or not a log would find it.
func sameTables(t *testing.T, local, cloud *node) {
	t.Helper()
	const all = `
		SELECT group_concat(line, char(10)) FROM (
			SELECT json_array(origin, id, hex(uid), owner, updated_at, updated_by, deleted_at, content) AS line FROM todos
			UNION ALL SELECT json_array(hex(uid), kind, subject, owner, node, at, body) FROM facts
			ORDER BY 1)`
	equal(t, "tables", read[string](local, all), read[string](cloud, all))
}

const alike = "0 differing, 0 repaired, 0 explained, 0 lasting"

// S:41. Entries of the log are lost by SQL: no cursor would ever find them again.
func TestRowsThatTheLogHasLostAreFoundAndMended(t *testing.T) {
	for name, damage := range map[string]func(local, cloud *node){
		"places before the cursor, at the cloud": func(_, cloud *node) {
			cloud.write(func(tx *sqlite.Tx) error { // written, and put where the reader has been
				for i := range 4 {
					h, err := cloud.addTx(tx, "lost")
					if err == nil {
						_, err = tx.Exec(`UPDATE todos SET seq = ? WHERE origin = 1 AND id = ?`, -1-i, h.ID)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
		"rows that are gone, at the cloud": func(_, cloud *node) { cloud.exec(`DELETE FROM todos WHERE id IN (3, 5) `) },
		"rows that are gone, at local":     func(local, _ *node) { local.exec(`DELETE FROM todos WHERE id IN (3, 5)`) },
		"texts that changed, at the cloud": func(_, cloud *node) {
			cloud.exec(`UPDATE todos SET content = 'x', updated_at = updated_at + 1 WHERE id IN (1, 20)`)
		},
		"texts that changed, at local": func(local, _ *node) {
			local.exec(`UPDATE todos SET content = 'x' WHERE id IN (1, 20)`) // the same stamp: the larger hash stays
		},
		"facts that are gone": func(local, _ *node) { local.exec(`DELETE FROM facts WHERE subject <> 'f1'`) },
	} {
		t.Run(name, func(t *testing.T) {
			apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				equal(t, "before", compared(t, c), alike)
				damage(local, cloud)
				before, err := local.log.Cursor(t.Context(), "cloud")
				must(t, err)
				equal(t, "found", compared(t, c), "4 differing, 4 repaired, 0 explained, 0 lasting")
				if line := c.Status().Compared.Line; !strings.Contains(line, "4 entries were not alike; 4 sent again") {
					t.Error(line)
				}
				after, err := local.log.Cursor(t.Context(), "cloud")
				must(t, err)
				equal(t, "cursor", after, before)
				sameTables(t, local, cloud)
				rest(t, c)
				equal(t, "after", compared(t, c), alike)
				sameTables(t, local, cloud)
			})
		})
	}
}

// A bucket of large rows takes more than one answer, and more than one offer.
func TestLargeRowsAreMendedToo(t *testing.T) {
	apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		cloud.many(12, 100_000)
		local.many(12, 100_000)
		rest(t, c)
		local.exec(`DELETE FROM todos WHERE origin = 1`)
		cloud.exec(`DELETE FROM todos WHERE origin = 0`)
		equal(t, "found", compared(t, c), "64 differing, 64 repaired, 0 explained, 0 lasting")
		sameTables(t, local, cloud)
	})
}

// What has not been read yet is no difference.
func TestNodesThatAreNotAtRestAreNotCompared(t *testing.T) {
	for name, write := range map[string]func(local, cloud *node){
		"at local":     func(local, _ *node) { local.add("new") },
		"at the cloud": func(_, cloud *node) { cloud.add("new") },
	} {
		t.Run(name, func(t *testing.T) {
			apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				write(local, cloud)
				l.since("")
				if _, err := c.Compare(t.Context()); err == nil {
					t.Error("they were compared")
				}
				equal(t, "buckets and rows asked for", l.since("GET digest")-1+l.since("GET rows"), 0)
				rest(t, c)
				equal(t, "at rest", compared(t, c), alike)
			})
		})
	}
}

// What one node set aside is shown as the reason, and not sent over and over.
func TestDifferenceThatQuarantineExplainsIsShownAndNotRepaired(t *testing.T) {
	apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		r := cloud.add("milk")
		rest(t, c)
		cloud.write(func(tx *sqlite.Tx) error { // a newer version that cannot be sent
			_, err := tx.Exec(`UPDATE todos SET content = CAST(x'ff' AS TEXT), updated_at = updated_at + 1, seq = seq + 100 WHERE origin = 1 AND id = ?`, r.ID)
			return err
		})
		rest(t, c)
		l.since("")
		equal(t, "compared", compared(t, c), "1 differing, 0 repaired, 1 explained, 0 lasting")
		equal(t, "offers", l.since("POST changes"), 0)
		equal(t, "state", c.Status().Code, "quarantine")
	})
}

// The peer has more in quarantine than a greeting tells of.
func TestMoreThanAHundredDifferencesAreExplained(t *testing.T) {
	apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		for i := range 150 {
			local.fact("fired", fmt.Sprint("g", i), "x")
			local.add(fmt.Sprint("todo ", i))
		}
		rest(t, c)
		for _, table := range []string{"todos", "facts"} {
			where := map[string]string{"todos": "content LIKE 'todo %'", "facts": "subject LIKE 'g%'"}[table]
			cloud.exec(`
				INSERT INTO sync_quarantine (tbl, uid, kind, reason, owner, updated_at, entry, at, retry_at, versions)
				SELECT '` + table + `', uid, 'held_delete', 'many', owner, 1, x'', 1, 1, '' FROM ` + table + ` WHERE ` + where)
			cloud.exec(`DELETE FROM ` + table + ` WHERE ` + where)
		}
		equal(t, "aside at the cloud", read[int](cloud, `SELECT count(*) FROM sync_quarantine`), 300)
		l.since("")
		equal(t, "compared", compared(t, c), "300 differing, 0 repaired, 300 explained, 0 lasting")
		equal(t, "offers", l.since("POST changes"), 0)
	})
}

// A repair that did not help is not made again, and said to be lasting.
func TestOneRepairIsMadeForOneDifference(t *testing.T) {
	apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		// An account of the row's stamp that no rule would bring about: each takes the other's
		// for older.
		cloud.exec(`CREATE TRIGGER stubborn BEFORE INSERT ON todos WHEN new.id = 99 BEGIN SELECT RAISE(IGNORE); END`)
		local.write(func(tx *sqlite.Tx) error {
			_, err := local.addTx(tx, "never there")
			if err == nil {
				_, err = tx.Exec(`UPDATE todos SET id = 99, seq = -1 WHERE origin = 0 AND content = 'never there'`)
			}
			return err
		})
		equal(t, "the first time", compared(t, c), "1 differing, 1 repaired, 0 explained, 0 lasting")
		l.since("")
		equal(t, "the second", compared(t, c), "1 differing, 0 repaired, 0 explained, 1 lasting")
		equal(t, "the third", compared(t, c), "1 differing, 0 repaired, 0 explained, 1 lasting")
		equal(t, "offers", l.since("POST changes"), 0)
		cloud.exec(`DROP TRIGGER stubborn`)
		local.exec(`UPDATE todos SET content = 'another', updated_at = updated_at + 1 WHERE id = 99`)
		equal(t, "another difference", compared(t, c), "1 differing, 1 repaired, 0 explained, 0 lasting")
		sameTables(t, local, cloud)
	})
}

// It is killed, or cut off, in the middle: the next comparison does the rest.
func TestComparisonThatIsCutOffIsMadeAgain(t *testing.T) {
	for lose := 1; lose <= 4; lose++ {
		apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
			local.exec(`DELETE FROM todos WHERE origin = 1 AND id = 3`)
			cloud.exec(`DELETE FROM todos WHERE origin = 0 AND id = 3`)
			n := 0
			l.answers(func(path string) *http.Response {
				if n++; n == lose {
					return answer(502, "text/html", strings.NewReader("no"))
				}
				return nil
			})
			if _, err := c.Compare(t.Context()); !errors.Is(err, link.ErrPeerStranger) {
				t.Error(lose, err)
			}
			l.answers(nil)
			rest(t, c)
			_ = compared(t, c)
			sameTables(t, local, cloud)
		})
	}
}

// Six hours after the last one, after each reset, and on request.
func TestComparisonsAreMadeByTime(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		local.many(20, 0)
		l.since("")
		time.Sleep(time.Hour)
		equal(t, "in the first hour", l.since("GET digest"), 1)
		time.Sleep(24 * time.Hour)
		equal(t, "in a day", l.since("GET digest"), 4)
		cloud.exec(`DELETE FROM todos WHERE id < 5`)
		c.CompareSoon()
		synctest.Wait()
		sameTables(t, local, cloud)
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 20)
		time.Sleep(time.Hour)
		l.since("")
		cloud.exec(`UPDATE sync_tokens SET seq = 0`) // local's cursor is none of the cloud's any more
		cloud.add("milk")
		time.Sleep(2 * time.Minute)
		equal(t, "after a reset", l.since("GET digest"), 1)
		if s := c.Status(); s.Reset == "" || s.ResetAt == 0 {
			t.Errorf("%+v", s)
		}
		sameTables(t, local, cloud)
	})
}

// S:41. Somebody at the cloud, which cannot call, asks for a comparison: home hears of it in
// its next greeting, and the cloud of what came of it in the one after.
func TestTheCloudHasHomeCompare(t *testing.T) {
	linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		local.many(20, 0)
		time.Sleep(time.Hour)
		cloud.exec(`DELETE FROM todos WHERE id < 5`)
		l.since("")
		l.server().CompareSoon()
		time.Sleep(time.Minute)
		equal(t, "comparisons", l.since("GET digest")-1, 1) // and the buckets of one table
		equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 20)
		for end, status := range map[string]link.Status{"local": c.Status(), "cloud": l.server().Status()} {
			if status.Compared == nil || status.Compared.Repaired != 4 {
				t.Errorf("%s shows %+v", end, status.Compared)
			}
		}
		time.Sleep(5 * time.Minute)
		equal(t, "comparisons after that", l.since("GET digest"), 0)
	})
}

// What the cloud shows is home's last comparison, also where home's clock was ahead for
// the one before.
func TestTheCloudShowsTheLastComparisonWhateverTheClocksSay(t *testing.T) {
	apart(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
		cloud.exec(`DELETE FROM todos WHERE id < 5`)
		local.skew = time.Hour
		_ = compared(t, c)
		must(t, c.Greet(t.Context()))
		equal(t, "the first", l.server().Status().Compared.Repaired, 8)
		local.skew = 0
		rest(t, c)
		equal(t, "the second", compared(t, c), alike)
		must(t, c.Greet(t.Context()))
		equal(t, "shown", l.server().Status().Compared.Line, c.Status().Compared.Line)
	})
}

// While the line is cut nobody compares; what was asked for meanwhile is done then.
func TestAComparisonThatWasAskedForWhileTheLineWasCut(t *testing.T) {
	for _, at := range []string{"local", "cloud"} {
		t.Run(at, func(t *testing.T) {
			linked(t, func(t *testing.T, local, cloud *node, l *line, c *link.Client) {
				local.many(20, 0)
				time.Sleep(time.Hour)
				l.cut()
				time.Sleep(time.Minute)
				cloud.exec(`DELETE FROM todos WHERE id < 5`)
				if at == "local" {
					c.CompareSoon()
				} else {
					l.server().CompareSoon()
				}
				time.Sleep(time.Hour)
				equal(t, "rows while it is cut", read[int](cloud, `SELECT count(*) FROM todos`), 16)
				l.heal()
				time.Sleep(3 * time.Minute)
				equal(t, "rows", read[int](cloud, `SELECT count(*) FROM todos`), 20)
			})
		})
	}
}

// The other node asks for a table that this version does not have, or for junk.
func TestDigestOfWhatIsNotThere(t *testing.T) {
	_, cloud := pair(t)
	p := newPeer(newLine(cloud))
	for _, path := range []string{"digest?table=users", "rows?table=users&bucket=0", "rows"} {
		if err := p.Call(t.Context(), "GET", path, nil, nil); !errors.Is(err, link.ErrPeerFailed) || !strings.Contains(err.Error(), sync.ErrNoTable.Code) {
			t.Error(path, err)
		}
	}
	for _, path := range []string{"digest", "digest?cutoff=x&cursor=y", "digest?table=todos&cutoff=-1", "rows?table=todos&bucket=x", "rows?table=facts&bucket=999"} {
		must(t, p.Call(t.Context(), "GET", path, nil, nil))
	}
	for _, path := range []string{"rows?table=todos&bucket=0&after=-5", "rows?table=facts&bucket=7&after=7", "rows?table=todos&bucket=0&after=0-256"} {
		if err := p.Call(t.Context(), "GET", path, nil, nil); !errors.Is(err, link.ErrPeerFailed) || !strings.Contains(err.Error(), sync.ErrBadPage.Code) {
			t.Error(path, err)
		}
	}
}
