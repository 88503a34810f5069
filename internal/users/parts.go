package users

import "slices"

// An account has three parts that go by times of their own: its password, its ban, and
// the rest. So a password that was set at one node lifts no ban that was made at the
// other, and a ban brings no older password back. Each change of an account has a later
// time than any one before it, whatever the clock says.

// newer reports whether any part of a was written after that of b, which has its id.
func (a record) newer(b record) bool {
	return a.UpdatedAt > b.UpdatedAt || a.PasswordAt > b.PasswordAt || a.BanAt > b.BanAt
}

// merge returns a with what is newer of b, which has its id.
func (a record) merge(b record) record {
	if b.UpdatedAt > a.UpdatedAt {
		a.Email, a.Role, a.CreatedAt, a.UpdatedAt = b.Email, b.Role, b.CreatedAt, b.UpdatedAt
	}
	if b.PasswordAt > a.PasswordAt {
		a.PasswordHash, a.PasswordVersion, a.PasswordAt = b.PasswordHash, b.PasswordVersion, b.PasswordAt
	}
	if b.BanAt > a.BanAt {
		a.DisabledAt, a.BanAt = b.DisabledAt, b.BanAt
	}
	return a
}

// timed returns the record of a node that keeps one time for the whole of it, with
// that as the time of each part.
func (a record) timed() record {
	if a.PasswordAt == 0 {
		a.PasswordAt = a.UpdatedAt
	}
	if a.BanAt == 0 {
		a.BanAt = a.UpdatedAt
	}
	return a
}

// behind reports whether some accounts lack one of others, or have an older part of
// it.
func behind(some, others []record) bool {
	for _, o := range others {
		i := slices.IndexFunc(some, func(a record) bool { return a.ID == o.ID })
		if i < 0 || o.newer(some[i]) {
			return true
		}
	}
	return false
}

// apartFrom returns the accounts that came with those of here in the place of the ones
// that have an address of theirs, and neither is known where the other is; and those
// addresses.
func apartFrom(come, have []record) (rest []record, taken []string) {
	rest = slices.Clone(come)
	for _, h := range have {
		if slices.ContainsFunc(come, func(a record) bool { return a.ID == h.ID }) {
			continue
		}
		for i, a := range rest {
			if a.Email == h.Email && a.ID != h.ID && !slices.ContainsFunc(have, func(b record) bool { return b.ID == a.ID }) {
				rest[i] = h
				taken = append(taken, h.Email)
			}
		}
	}
	return rest, taken
}
