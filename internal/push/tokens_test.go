package push

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// shelf is the tokens of one node.
type shelf struct {
	t *testing.T
	*Tokens
}

func newShelf(t *testing.T, authority bool) shelf {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "todos.db"))
	return shelf{t, NewTokens(db, TokenOptions{Authority: authority, Log: quiet()})}
}

func (s shelf) write(fn func(*sqlite.Tx) error) {
	s.t.Helper()
	must(s.t, s.db.Write(s.t.Context(), fn))
}

func (s shelf) exec(statement string) {
	s.t.Helper()
	s.write(func(tx *sqlite.Tx) error { _, err := tx.Exec(statement); return err })
}

func (s shelf) register(owner, token, device string) {
	s.t.Helper()
	s.write(func(tx *sqlite.Tx) error {
		_, err := s.RegisterTx(tx, owner, Registration{token, "android", device})
		return err
	})
}

func (s shelf) forget(owner, device string) (known bool) {
	s.t.Helper()
	s.write(func(tx *sqlite.Tx) (err error) {
		known, err = s.ForgetTx(tx, owner, device)
		return err
	})
	return known
}

// buries has the push service call the token dead, as a send finds it.
func (s shelf) buries(owner, token string) {
	s.t.Helper()
	for _, to := range s.targets(owner) {
		if to.Address == token {
			s.write(func(tx *sqlite.Tx) error { return s.buryTx(tx, to) })
			return
		}
	}
	s.t.Fatalf("%s has no token %s", owner, token)
}

func (s shelf) targets(owner string) []Target {
	s.t.Helper()
	all, err := s.Targets(s.t.Context(), owner)
	must(s.t, err)
	return all
}

// rings is where an owner is rung, as token@device.
func (s shelf) rings(owner string) string {
	s.t.Helper()
	var all []string
	for _, to := range s.targets(owner) {
		all = append(all, to.Address+"@"+to.device)
	}
	return strings.Join(all, " ")
}

func TestRegistrationOutOfBoundsIsRefused(t *testing.T) {
	s := newShelf(t, true)
	good := Registration{"token", "ios", "device"}
	for name, c := range map[string]struct {
		spoil func(*Registration)
		field string
	}{
		"no token":         {func(r *Registration) { r.Token = "" }, "token"},
		"long token":       {func(r *Registration) { r.Token = strings.Repeat("x", 4097) }, "token"},
		"token with space": {func(r *Registration) { r.Token = "a b" }, "token"},
		"token not ASCII":  {func(r *Registration) { r.Token = "tökén" }, "token"},
		"NUL":              {func(r *Registration) { r.Token = "a\x00" }, "token"},
		"no platform":      {func(r *Registration) { r.Platform = "" }, "platform"},
		"other platform":   {func(r *Registration) { r.Platform = "Android" }, "platform"},
		"no device":        {func(r *Registration) { r.DeviceID = "" }, "device_id"},
		"long device":      {func(r *Registration) { r.DeviceID = strings.Repeat("x", 129) }, "device_id"},
	} {
		r := good
		c.spoil(&r)
		err := s.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := s.RegisterTx(tx, "ada", r)
			return err
		})
		f := fault.From(err)
		if f.Kind != fault.Invalid || f.Code != "push_token_invalid" || len(f.Fields) != 1 || f.Fields[0].Name != c.field {
			t.Errorf("%s: %+v", name, f)
		}
	}
	longest := Registration{strings.Repeat("x", 4096), "web", strings.Repeat("y", 128)}
	s.write(func(tx *sqlite.Tx) error {
		d, err := s.RegisterTx(tx, "ada", longest)
		equal(t, d.DeviceID, longest.DeviceID)
		return err
	})
	equal(t, len(s.targets("ada")), 1)
}

func TestOneInstallationHasOneRow(t *testing.T) { // R:C5
	t.Run("the last token wins", func(t *testing.T) {
		s := newShelf(t, true)
		for _, token := range []string{"T1", "T2", "T1"} {
			s.register("ada", token, "phone")
		}
		equal(t, s.rings("ada"), "T1@phone")
	})
	t.Run("two people on one phone", func(t *testing.T) {
		s := newShelf(t, true)
		s.register("ada", "T1", "phone")
		s.register("bob", "T1", "phone")
		equal(t, s.rings("ada"), "")
		equal(t, s.rings("bob"), "T1@phone")
	})
	t.Run("a token that moves to another installation moves wholly", func(t *testing.T) {
		s := newShelf(t, true)
		s.register("ada", "T1", "phone")
		s.register("bob", "T2", "tablet")
		s.register("bob", "T1", "tablet")
		equal(t, s.rings("ada"), "")
		equal(t, s.rings("bob"), "T1@tablet")
	})
}

func TestOwnersSeeAndForgetTheirOwnDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, true)
		first := time.Now().UTC()
		s.register("ada", "T1", "phone")
		s.register("bob", "T2", "tablet")
		time.Sleep(time.Hour)
		s.register("ada", "T1", "phone") // at each start of the app
		devices, err := s.List(t.Context(), "ada")
		must(t, err)
		same(t, devices, []Device{{"phone", "android", first}})

		equal(t, s.forget("bob", "phone"), false)
		equal(t, s.rings("ada"), "T1@phone")
		equal(t, s.forget("ada", "phone"), true)
		equal(t, s.forget("ada", "phone"), false)
		equal(t, s.rings("ada"), "")
		for range 3 {
			s.register("ada", "T1", "phone") // in the same millisecond
		}
		equal(t, s.rings("ada"), "T1@phone")
		equal(t, s.forget("ada", "phone"), true) // though its stamps have run ahead of the clock
		equal(t, s.rings("ada"), "")
	})
}

func TestDeadTokenGoesAndANewerOneStays(t *testing.T) { // R:C4 UNREGISTERED
	s := newShelf(t, true)
	changes := 0
	s.o.OnChange = func() { changes++ }
	s.register("ada", "T1", "phone")
	old := s.targets("ada")[0]
	s.register("ada", "T2", "phone") // while the message to T1 was under way
	s.write(func(tx *sqlite.Tx) error { return s.buryTx(tx, old) })
	equal(t, s.rings("ada"), "T2@phone")
	equal(t, changes, 2)
	s.buries("ada", "T2")
	equal(t, s.rings("ada"), "")
	equal(t, changes, 3)
}

func TestDeadTokenOfASendIsForgotten(t *testing.T) { // R:C4 UNREGISTERED, through the outbox
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b")
		w.fcm.will(fail(Unregistered, "UNREGISTERED"))
		w.enqueue(ring("fire", "bob"))
		w.deliver()
		s := shelf{t, w.tokens}
		equal(t, s.rings("bob"), "")
		equal(t, w.of("fire").Reason, "UNREGISTERED")
		equal(t, w.of("fire").State, Retryable) // the app may register again in time
		w.fcm.will(take)
		s.register("bob", "new", "device-b")
		w.run(w.outbox.Loops(), time.Minute)
		same(t, w.fcm.to(), []string{"b", "new"})
		equal(t, w.of("fire").State, Accepted)
		equal(t, w.of("fire").Targets, 1) // the same device
	})
}

func TestADeviceThatRangDoesNotRingAgainUnderANewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.phone("bob", "b", "c")
		w.fcm.will(each(map[string]func(context.Context, Target) error{"c": fail(Retry, "500")}))
		w.enqueue(ring("fire", "bob"))
		w.deliver()
		shelf{t, w.tokens}.register("bob", "b2", "device-b")
		w.phone("bob", "d") // and one that came later is not rung for what others took
		w.fcm.will(take)
		w.run(w.outbox.Loops(), time.Minute)
		same(t, w.fcm.to()[2:], []string{"c"})
	})
}

func TestTheAuthorityTellsItsWatchersOfChangesOnly(t *testing.T) {
	s := newShelf(t, true)
	changes := 0
	s.o.OnChange = func() { changes++ }
	s.forget("ada", "nothing")
	equal(t, changes, 0)
	s.register("ada", "T1", "phone")
	equal(t, changes, 1)
	f := Forwarded{
		Registrations: []Registered{{"T2", "ios", "tablet", "ada", [16]byte{7}, 5, 5}},
		Forgotten:     []Forgotten{{"ada", "phone", time.Now().UnixMilli()}},
	}
	must(t, s.Receive(t.Context(), f))
	equal(t, changes, 2)
	equal(t, s.rings("ada"), "T2@tablet")
	must(t, s.Receive(t.Context(), f)) // done twice
	equal(t, changes, 2)
	dead := []Lapsed{{tokenHash("T2"), [16]byte{7}}}
	must(t, s.Unregistered(t.Context(), []Lapsed{{tokenHash("other"), [16]byte{7}}, {tokenHash("T2"), [16]byte{8}}}))
	equal(t, changes, 2)
	must(t, s.Unregistered(t.Context(), dead))
	must(t, s.Unregistered(t.Context(), dead))
	equal(t, changes, 3)
	equal(t, s.rings("ada"), "")
}

func TestTheNodeThatCopiesIsNoAuthority(t *testing.T) {
	cloud, local := newShelf(t, true), newShelf(t, false)
	_, _, exported := local.Export(t.Context())
	for name, err := range map[string]error{
		"export":       exported,
		"receive":      local.Receive(t.Context(), Forwarded{}),
		"unregistered": local.Unregistered(t.Context(), nil),
		"import":       cloud.Import(t.Context(), "g", []byte(`{"tokens":[]}`)),
	} {
		if !fault.Of(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadForwardIsRefusedWhole(t *testing.T) {
	s := newShelf(t, true)
	good := Registered{"T1", "ios", "phone", "ada", [16]byte{1}, 5, 5}
	for i, spoil := range []func(*Registered){
		func(r *Registered) { r.Token = "a b" },
		func(r *Registered) { r.Owner = "" },
		func(r *Registered) { r.Registration = [16]byte{} },
		func(r *Registered) { r.UpdatedAt = 0 },
		func(r *Registered) { r.RegisteredAt = -1 },
	} {
		bad := good
		bad.DeviceID = fmt.Sprint(i)
		spoil(&bad)
		err := s.Receive(t.Context(), Forwarded{Registrations: []Registered{good, bad}})
		equal(t, fault.From(err).Code, "bad_push_tokens")
	}
	for _, bad := range []Forgotten{{"ada", "a b", 5}, {"ada", "", 5}, {"ada", "phone", 0}} {
		err := s.Receive(t.Context(), Forwarded{Registrations: []Registered{good}, Forgotten: []Forgotten{bad}})
		equal(t, fault.From(err).Code, "bad_push_tokens")
	}
	equal(t, s.rings("ada"), "")
}

func TestAPersonHasABoundedNumberOfDevices(t *testing.T) {
	s := newShelf(t, true)
	for i := range maxDevices {
		s.register("ann", fmt.Sprint("token", i), fmt.Sprint("device", i))
	}
	err := s.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := s.RegisterTx(tx, "ann", Registration{"one more", "android", "one more"})
		return err
	})
	if fault.From(err).Code != "push_token_invalid" { // a space is no token, whatever the count
		t.Error(err)
	}
	err = s.db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := s.RegisterTx(tx, "ann", Registration{"one-more", "android", "one-more"})
		return err
	})
	if fault.From(err).Code != "too_many_devices" {
		t.Error(err)
	}
	s.register("ann", "another", "device7") // a new token for one of them
	s.register("ben", "bens", "bens")
}
