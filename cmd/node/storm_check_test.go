package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tandem/internal/sqlite"
)

// ownColumns are what a node keeps of a row for itself.
var ownColumns = map[string]bool{"seq": true, "seen": true, "next_fire_at": true}

// calm waits until both nodes have all, and checks that nothing was lost on the way.
func (s *storm) calm(limit time.Duration) {
	s.t.Helper()
	inTime(s.t, limit, s.settle)
	inTime(s.t, limit, s.same)
	s.home.terminates()
	s.cloud.terminates()
	must(s.t, s.same())
	s.rests()
	rows := s.rows()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range append(slices.Clone(s.kept), s.todos...) {
		w.check(s, rows[w.content])
	}
	for _, content := range s.reminders {
		equal(s.t, content, s.count(`SELECT content FROM scheduled_messages WHERE deleted_at IS NULL AND content = '`+content+`'`), 1)
	}
	for _, c := range s.collisions {
		s.conflicted(c, rows[c.content])
	}
	for _, p := range s.nodes() {
		aside, err := look(s.t.Context(), p.dir, sqlite.Todos, `SELECT tbl || ' ' || kind || ' ' || reason FROM sync_quarantine`)
		must(s.t, err)
		equal(s.t, "set aside at "+p.dir, fmt.Sprint(aside), "[]")
	}
	s.t.Logf("%d todos, %d reminders, %d deletes, %d collisions, %d conflicts", len(s.todos), len(s.reminders), s.deletes, len(s.collisions),
		s.count(`SELECT uid FROM facts WHERE kind = 'conflict'`))
}

func (s *storm) count(query string) int {
	s.t.Helper()
	rows, err := look(s.t.Context(), s.home.dir, sqlite.Todos, `SELECT count(*) || '' FROM (`+query+`)`)
	must(s.t, err)
	var n int
	_, err = fmt.Sscan(rows[0], &n)
	must(s.t, err)
	return n
}

// same returns nil where both nodes have the same rows and facts.
func (w *pair) same() error {
	for _, table := range []string{"todos", "scheduled_messages", "settings", "facts"} {
		home, err := replica(w.home, table)
		if err != nil {
			return err
		}
		cloud, err := replica(w.cloud, table)
		if err != nil {
			return err
		}
		if lacks, more := without(home, cloud), without(cloud, home); len(lacks)+len(more) > 0 {
			return fmt.Errorf("%s: %d at home and %d at the cloud; only at home %.2000q, only at the cloud %.2000q", table, len(home), len(cloud), lacks, more)
		}
	}
	return nil
}

// without lists what all has and others has not.
func without(all, others []string) (only []string) {
	has := map[string]bool{}
	for _, o := range others {
		has[o] = true
	}
	for _, a := range all {
		if !has[a] {
			only = append(only, a)
		}
	}
	return only
}

// replica is a table as both nodes have to have it.
func replica(p *process, table string) ([]string, error) {
	names, err := look(p.t.Context(), p.dir, sqlite.Todos, `SELECT name FROM pragma_table_info('`+table+`') ORDER BY name`)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, name := range names {
		if !ownColumns[name] {
			values = append(values, `'`+name+` ' || quote(`+name+`)`)
		}
	}
	return look(p.t.Context(), p.dir, sqlite.Todos, `SELECT `+strings.Join(values, ` || ', ' || `)+` FROM `+table+` ORDER BY uid`)
}

// rests checks that a further round moves nothing.
func (s *storm) rests() {
	s.t.Helper()
	before := s.marks()
	s.cloud.start()
	s.home.start()
	inTime(s.t, time.Minute, s.settle)
	time.Sleep(time.Second) // for what nobody would have to ask for
	s.home.terminates()
	s.cloud.terminates()
	equal(s.t, "what moved when there was nothing to move", s.marks(), before)
}

// stored is a todo as the nodes have it in the end.
type stored struct {
	Content, UID, Ref, By, Notes string
	At                           int64
	Deleted                      int64 // 0: it is not
}

// rows are the todos by content.
func (s *storm) rows() map[string][]stored {
	s.t.Helper()
	lines, err := look(s.t.Context(), s.home.dir, sqlite.Todos, `
		SELECT json_object('content', content, 'uid', lower(hex(uid)), 'ref', origin || '-' || id, 'by', updated_by, 'notes', notes,
			'at', updated_at, 'deleted', coalesce(deleted_at, 0))
		FROM todos WHERE alias_of IS NULL`)
	must(s.t, err)
	all := map[string][]stored{}
	for _, line := range lines {
		var row stored
		must(s.t, json.Unmarshal([]byte(line), &row))
		all[row.Content] = append(all[row.Content], row)
	}
	return all
}

// check holds what became of a todo against what its author was told.
func (w *written) check(s *storm, rows []stored) {
	s.t.Helper()
	if len(rows) > 1 || len(rows) == 0 && w.ref != "" {
		s.t.Errorf("%s (%s) is there %d times: %v", w.content, w.ref, len(rows), rows)
	}
	if len(rows) != 1 {
		return
	}
	row := rows[0]
	for _, v := range w.told {
		lost := row.At < v.at || row.At == v.at && row.By < v.by
		other := row.At == v.at && row.By == v.by && (v.later || row.Notes != v.notes)
		if lost || other {
			s.t.Errorf("%s: %+v was answered, and there is %+v", w.content, v, row)
		}
	}
	if !slices.Contains(w.notes, row.Notes) || row.Deleted > 0 && !w.doomed {
		s.t.Errorf("%s: nobody has made it %+v", w.content, row)
	}
}

// conflicted checks that the edit which lost is shown, once.
func (s *storm) conflicted(c collision, rows []stored) {
	s.t.Helper()
	if len(rows) != 1 {
		return // check has told
	}
	lost := c.notes[0]
	if rows[0].Notes == lost {
		lost = c.notes[1]
	}
	shown, err := look(s.t.Context(), s.home.dir, sqlite.Todos, `SELECT body ->> '$.lost.notes' FROM facts WHERE kind = 'conflict' AND subject = '`+rows[0].UID+`'`)
	must(s.t, err)
	equal(s.t, "what lost of "+c.content, fmt.Sprint(shown), fmt.Sprint([]string{lost}))
}
