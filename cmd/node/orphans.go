package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// orphans counts the rows whose owner has no account here, by table. Before there is any
// account that says nothing.
func (n *node) orphans(ctx context.Context) (map[string]int, error) {
	known, err := n.users.Known(ctx)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	var owners []string
	for _, k := range known {
		owners = append(owners, k.ID)
	}
	return n.log.Orphans(ctx, owners)
}

// examineOrphans looks whether all rows belong to accounts that are here. Some do not
// where users.db was lost or put back, and todos.db was not.
func (n *node) examineOrphans(ctx context.Context) finding {
	lost, err := n.orphans(ctx)
	switch {
	case err != nil:
		return finding{"owners", fail, err.Error(), ""}
	case len(lost) == 0:
		return finding{"owners", fine, "every row belongs to an account", ""}
	}
	mend := "They are in nobody's list. Restore a backup in which the accounts are: " + n.line("restore") + " DIR."
	if s := n.linkState(); s.Broken() && s.Mend != "" {
		mend = "They are in nobody's list until the two nodes are in touch. " + s.Mend
	} else if n.Peer.On() {
		mend = fmt.Sprintf("They are in nobody's list until their accounts come back from %s, which they do by themselves once the two nodes are in touch.", n.Peer.Name)
	}
	return finding{"owners", warn, orphanCounts(lost) + " belong to accounts that are not here", mend}
}

func orphanCounts(lost map[string]int) string {
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(lost)) {
		parts = append(parts, fmt.Sprint(lost[table], " ", strings.ReplaceAll(table, "_", " ")))
	}
	return strings.Join(parts, ", ")
}

// tellOrphans has the log say what the doctor would, for those who never ask it.
func (n *node) tellOrphans(ctx context.Context) error {
	lost, err := n.orphans(ctx)
	if len(lost) > 0 {
		n.logger.WarnContext(ctx, "rows belong to accounts that are not here", "rows", orphanCounts(lost))
	}
	return err
}
