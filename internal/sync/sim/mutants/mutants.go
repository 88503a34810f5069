package main

// mutant is one deliberate mistake.
type mutant struct {
	name   string
	breaks string // what people would suffer from it
	edits  []edit
}

// edit replaces text that must be in the file exactly once.
type edit struct{ file, old, new string }

const (
	head       = "internal/sync/head.go"
	page       = "internal/sync/page.go"
	table      = "internal/sync/table.go"
	apply      = "internal/sync/apply.go"
	store      = "internal/sync/store.go"
	rekey      = "internal/sync/rekey.go"
	life       = "internal/sync/life.go"
	row        = "internal/sync/row.go"
	conflict   = "internal/sync/conflict.go"
	quarantine = "internal/sync/quarantine.go"
	inbox      = "internal/sync/letters/inbox.go"
)

// mutants are the easier choices that replication does not make.
var mutants = []mutant{
	{"wall clock stamps", "who edits what he saw loses to it when his clock is slow", []edit{
		{head, `max(clock(tx), h.UpdatedAt+1)`, `clock(tx)`},
	}},
	{"cursor on updated_at", "rows whose stamp is older than the cursor are never read", []edit{
		{page, "query+` WHERE seq > ? ORDER BY seq`, after)", "map[bool]string{true: query + ` WHERE at > ? ORDER BY at`, false: query + ` WHERE updated_at > ? ORDER BY updated_at`}[strings.Contains(query, ` FROM facts`)], after)"},
		{page, `return entry{seq: row.Seq, json: text`, `return entry{seq: row.UpdatedAt, json: text`},
		{page, `return entry{seq: f.Seq, json: b}, err`, `return entry{seq: f.At, json: b}, err`},
	}},
	{"no token", "a log that was put back and has overtaken the cursor looks healthy", []edit{
		{page, `if !known || at != seq {`, `if known && at != seq {`},
		{life, `g.fence.Served > l.last.seq`, `g.fence.Served < 0`},
	}},
	{"token of a place", "a place that was given out twice has one token", []edit{
		{page, `token := newToken()`, `token := fmt.Sprint("place", end)`},
		{page, `INSERT INTO sync_tokens`, `INSERT OR IGNORE INTO sync_tokens`},
		{life, `g.fence.Served > l.last.seq`, `g.fence.Served < 0`},
	}},
	{"tokens in memory", "each restart has the peer read all from the start", []edit{
		{life, "		l.incarnation = s.incarnation\n", "		l.incarnation = s.incarnation\n		_, _ = tx.Exec(`DELETE FROM sync_tokens`)\n"},
	}},
	{"echo filter", "what came from the peer and was lost there is never handed back", []edit{
		{page, "		if e.bad != nil {\n			bad", "		if s := string(e.json); strings.HasPrefix(s, `{\"table\":`) && !strings.HasPrefix(s, `{\"table\":\"facts\"`) && !strings.Contains(s, `\"updated_by\":\"`+l.node+`\"`) {\n			p.At = e.seq\n			continue\n		}\n		if e.bad != nil {\n			bad"},
	}},
	{"tombstones purged", "a node that was put back brings deleted rows back", []edit{
		{page, "	if err := l.markTx(tx); err != nil {", "	for _, t := range l.order {\n		if _, err := tx.Exec(`DELETE FROM `+t.Name+` WHERE deleted_at IS NOT NULL AND seq <= ?`, from); err != nil {\n			return \"\", err\n		}\n	}\n	if err := l.markTx(tx); err != nil {"},
	}},
	{"replace for upsert", "what a node keeps for itself in a row is lost with each version", []edit{
		{table, "return `INSERT INTO ` + t.Name", "return `INSERT OR REPLACE INTO ` + t.Name"},
		{table, "` ON CONFLICT (origin, id) DO UPDATE SET ` + t.updates", "``"},
	}},
	{"cursor ahead of the rows", "a crash between the two loses the page", []edit{
		{apply, "	var stored string\n	err := l.db.Write(", "	var stored string\n	_ = l.db.Write(ctx, func(tx *sqlite.Tx) error {\n		_, err := tx.Exec(`INSERT INTO sync_cursors (peer, cursor) SELECT ?, ? WHERE ? = coalesce((SELECT cursor FROM sync_cursors WHERE peer = ?), '')\n			ON CONFLICT (peer) DO UPDATE SET cursor = excluded.cursor`, peer, next, from, peer)\n		return err\n	})\n	err := l.db.Write("},
	}},
	{"to without from", "an old call that arrives late moves the cursor to where it was never read", []edit{
		{apply, `if err != nil || stored != from || next == from {`, `if err != nil || next == "" || next == from {`},
	}},
	{"the younger row moves", "who sees it gives it another key, and it has one at each node", []edit{
		{rekey, "	} else if err := a.free(t, in); err != nil {\n", "	} else if err := a.free(t, in); errors.Is(err, errKeyTaken) && in.AliasOf == nil {\n		if in.ID, err = a.nextID(t.Name); err != nil {\n			return err\n		}\n	} else if err != nil {\n"},
	}},
	{"seen stays at home", "each edit of what came looks like a conflict", []edit{
		{row, "b = append(append(b, `,\"seen\":`...), r.Seen...)", "b = append(b, `,\"seen\":{}`...)"},
	}},
	{"seen of the winner alone", "what was compared once is a conflict again", []edit{
		{store, `if both == mine.Seen {`, `if both != "" {`},
	}},
	{"one bad entry stops the page", "a bad row keeps all that comes after it away", []edit{
		{apply, "	if err := l.setBadAside(", "	if len(b.bad) > 0 {\n		return ErrBadPage\n	}\n	if err := l.setBadAside("},
	}},
	{"conflicts by time", "both nodes tell of one loss, each by itself", []edit{
		{conflict, `KeyedUID(KindConflict, goes.UID.String(), fmt.Sprint(goes.UpdatedAt), goes.UpdatedBy)`, `KeyedUID(KindConflict, goes.UID.String(), fmt.Sprint(tx.Millis()), l.node)`},
	}},
	{"no breaker", "a script that went wrong at one node empties the other", []edit{
		{apply, `	if watch {`, `	if watch && len(pages) == 0 {`},
	}},
	{"no alias", "a key that somebody wrote down leads nowhere", []edit{
		{rekey, `if err := a.place(t, alias(t, drop, stays)); !errors.Is(err, errKeyTaken) {`, `if err != nil {`},
	}},
	{"no fence", "a node that was put back writes on in the life that its peer knows further", []edit{
		{life, `case g.path == "":`, `case g.path == "" || known:`},
	}},
	{"ids from the largest", "after a restore one row gets the key of another", []edit{
		{life, `max(id, next.Reserved[table])`, `id`},
		{life, `l.last.ids[table] += gap(tx)`, `l.last.ids[table] += 0 * gap(tx)`},
	}},
	{"letters act again", "a letter that comes twice is done twice", []edit{
		{inbox, "			isNew, err := noteTx(tx, l.Key)\n			if err != nil || !isNew {\n				return err\n			}\n			return b.Handle(tx, l)", "			if _, err := noteTx(tx, l.Key); err != nil {\n				return err\n			}\n			return b.Handle(tx, l)"},
	}},
}
