package pairing

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"tandem/internal/config"
	"tandem/internal/fault"
	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/sync/link"
	"tandem/internal/users"
)

// visit is what home says at the cloud's door with a code in hand.
type visit struct {
	Hello    link.Hello        `json:"hello"`
	Peer     string            `json:"peer"`              // whom its configuration names
	Accounts []users.Known     `json:"accounts"`          // all that home has
	Join     bool              `json:"join"`              // false: only look
	Matched  map[string]string `json:"matched,omitempty"` // with Join: as it was answered before
	Knows    string            `json:"knows,omitempty"`   // that home has a secret, without telling it
	Carried  json.RawMessage   `json:"carried,omitempty"` // with Join: the accounts that the cloud lacks, or has by the same id
}

// welcome is what the cloud says to that.
type welcome struct {
	Refusal   *fault.Error      `json:"refusal,omitempty"` // nothing was changed
	Hello     link.Hello        `json:"hello"`
	Matched   map[string]string `json:"matched,omitempty"`   // home's id to the cloud's, of accounts of one address
	Lacking   []string          `json:"lacking,omitempty"`   // home's ids that the cloud does not know
	Passwords map[string]int64  `json:"passwords,omitempty"` // of home's ids that the cloud has too: when the password there was set, Unix ms
	Met       int64             `json:"met,omitempty"`       // when the cloud was last in touch with a home, Unix ms
	Again     bool              `json:"again,omitempty"`     // home has the secret that holds here
	Secret    string            `json:"secret,omitempty"`    // with Join
	Directory *link.Whole       `json:"directory,omitempty"`
}

// Code is what the operator takes home.
type Code struct {
	Code  string
	Until time.Time
	Peer  string
	Met   int64 // when this node was last in touch with a home, which another one may put out; Unix ms, 0: never
}

// Open makes a code for the operator to take home.
func (p *Pairing) Open() (Code, error) {
	if err := p.pairable(); err != nil {
		return Code{}, err
	}
	code, until := p.codes.open(p.Now())
	return Code{code, until, p.Peer.Name, p.Met()}, nil
}

// Admit is asked of each call at the door, before a byte of it is read.
func (p *Pairing) Admit(code string) bool { return p.codes.admit(code, p.Now()) }

// answer answers home, who has a code. A look changes nothing. To join spends
// the code: home's accounts that are newer or not here yet are taken in, then the new
// secret is in the file, then rows here move to their new owners, then home hears of it. Killed on the way, home comes again with
// another code and finds done what was done.
func (p *Pairing) answer(ctx context.Context, code string, in visit) (welcome, error) {
	out, err := p.lookAt(ctx, in)
	out.Again = !p.Parting.Parted() && slices.ContainsFunc(p.Keys.Accept(), func(s config.Secret) bool { return in.Knows == knows(string(s), code) })
	if err == nil && in.Join {
		err = p.letIn(ctx, code, in, &out)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		p.Logger.WarnContext(ctx, "pairing refused", "code", f.Code)
		return welcome{Refusal: f, Hello: p.Hello()}, nil
	}
	return out, err
}

// knows shows to whoever has a secret, and the code of this call, that the caller has
// both. It leads nobody to the secret.
func knows(secret, code string) string {
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte("pair " + code))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func (p *Pairing) lookAt(ctx context.Context, in visit) (welcome, error) {
	out := welcome{Hello: p.Hello()}
	if in.Hello.Node != p.Peer.Name || in.Peer != p.Node.Name {
		return out, fault.New(fault.Conflict, "pair_names", "The two configurations do not name each other: %s names %s, and %.40q names %.40q. "+
			"Let peer.name of each be node.name of the other, restart, and do it again.", p.Node.Name, p.Peer.Name, in.Hello.Node, in.Peer)
	}
	if err := cmp.Or(p.pairable(), in.Hello.Check(p.Hello(), p.Peer.Name)); err != nil {
		return out, err
	}
	have, err := p.Users.Known(ctx)
	if err != nil {
		return out, err
	}
	set, err := p.Users.PasswordTimes(ctx)
	if err != nil {
		return out, err
	}
	out.Met, out.Passwords = p.Met(), map[string]int64{}
	here, addresses := map[string]bool{}, map[string]string{}
	for _, k := range have {
		here[k.ID], addresses[k.Email] = true, k.ID
	}
	for _, k := range in.Accounts {
		switch to, taken := addresses[k.Email]; {
		case here[k.ID]: // the same account, whatever its address is by now
			out.Passwords[k.ID] = set[k.ID]
		case taken:
			if out.Matched == nil {
				out.Matched = map[string]string{}
			}
			out.Matched[k.ID] = to
		default:
			out.Lacking = append(out.Lacking, k.ID)
		}
	}
	return out, nil
}

func (p *Pairing) letIn(ctx context.Context, code string, in visit, out *welcome) error {
	if !maps.Equal(in.Matched, out.Matched) {
		return errChanged
	}
	if !p.codes.spend(code, p.Now()) {
		return ErrCode
	}
	// None carried is worth taking in as well: no account is kept out any more.
	if in.Carried != nil || len(in.Accounts) > len(out.Matched) {
		if err := p.Users.TakeIn(ctx, in.Carried); err != nil {
			return err
		}
	}
	p.Crash("pair.taken")
	generation, body, err := p.Users.Export(ctx)
	if err != nil {
		return err
	}
	if err := p.reunite(config.NewSecret()); err != nil {
		return err
	}
	p.Crash("pair.opened")
	// After the secret, so that home sends nothing more under the owners of before.
	err = p.Todos.Write(ctx, func(tx *sqlite.Tx) error {
		if err := p.moveRowsTx(tx, out.Matched); err != nil {
			return err
		}
		return push.MoveOwnersTx(tx, out.Matched)
	})
	if err != nil {
		return err
	}
	out.Secret, out.Directory = p.Keys.Send(), &link.Whole{Generation: generation, Body: body}
	p.Logger.InfoContext(ctx, "paired", "peer", p.Peer.Name, "accounts_taken_in", len(out.Lacking))
	return nil
}
