package standin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// FCM plays Firebase Cloud Messaging's HTTP v1 API for one project, and the
// token endpoint of its service accounts (POST /token).
type FCM struct {
	project string
	mux     *http.ServeMux
	login   login
	faults  faults

	mu       sync.Mutex
	posts    map[string]int // by device token, refused ones too
	accepted []FCMMessage
}

// NewFCM returns an FCM that asks for no login until it is told to Trust an account.
func NewFCM(project string) *FCM {
	f := &FCM{project: project, mux: http.NewServeMux(), posts: map[string]int{}}
	f.mux.HandleFunc("POST /v1/projects/{project}/messages:send", f.send)
	f.mux.HandleFunc("POST /token", f.login.grant)
	return f
}

// ServeHTTP implements http.Handler.
func (f *FCM) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// Fail makes the next sends to a device token, or to any if it is empty, end in
// these faults, one each.
func (f *FCM) Fail(token string, faults ...Fault) { f.faults.queue(token, faults) }

// FailAlways makes every send to a device token, or to any if it is empty, end
// in this fault until Heal.
func (f *FCM) FailAlways(token string, fault Fault) { f.faults.keep(token, fault) }

// Heal forgets all faults.
func (f *FCM) Heal() { f.faults.heal() }

// Posts counts the sends that arrived, those refused included: for one device
// token, or for all together if it is empty.
func (f *FCM) Posts(token string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token != "" {
		return f.posts[token]
	}
	sum := 0
	for _, n := range f.posts {
		sum += n
	}
	return sum
}

// Messages returns what was accepted, in order of arrival.
func (f *FCM) Messages() []FCMMessage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.accepted)
}

// Screen returns what the phone behind token shows: the newest message under
// each tag, in the order in which they last changed.
func (f *FCM) Screen(token string) []FCMMessage {
	var shown []FCMMessage
	for _, m := range f.Messages() {
		if m.Token != token {
			continue
		}
		shown = slices.DeleteFunc(shown, func(old FCMMessage) bool { return old.tag() == m.tag() })
		shown = append(shown, m)
	}
	return shown
}

func (f *FCM) send(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	m, dry, wrong := parseFCM(body)
	f.count(m.Token)
	switch {
	case err != nil:
		panic(http.ErrAbortHandler)
	case !f.login.holds(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")):
		Unauthenticated.answer(w, r)
		return
	case r.PathValue("project") != f.project:
		NotFound.answer(w, r)
		return
	case wrong != "":
		invalidArgument(wrong).answer(w, r)
		return
	}
	fault, failing := f.faults.next(m.Token)
	if failing && !fault.accept {
		fault.answer(w, r)
		return
	}
	name := f.accept(m, dry)
	if failing {
		fault.answer(w, r)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"name": name})
}

func (f *FCM) count(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts[token]++
}

// accept remembers m, unless its sender only wanted it checked, and names it.
func (f *FCM) accept(m FCMMessage, dry bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if dry {
		return "projects/" + f.project + "/messages/fake_message_id"
	}
	m.At = time.Now()
	m.Name = fmt.Sprintf("projects/%s/messages/0:%d", f.project, len(f.accepted)+1)
	f.accepted = append(f.accepted, m)
	return m.Name
}
