package standin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Fault is one way in which a far end fails a call.
type Fault struct {
	accept bool // the message was taken all the same
	answer http.HandlerFunc
}

// Faults that are the same at every far end.
var (
	// Hang never answers: the call ends when its caller gives up.
	Hang = Fault{answer: func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}}
	// AcceptThenCut takes the message and hangs up without an answer.
	AcceptThenCut = Fault{accept: true, answer: func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}}
	// AcceptThenTear takes the message and hangs up in the middle of saying so.
	AcceptThenTear = Fault{accept: true, answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "200")
		io.WriteString(w, `{"ok": true, "na`)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}}
)

// HTML answers as a gateway or a hotel's login page would. The page repeats the
// request's path, as such pages do: a secret in it would leak into careless errors.
func HTML(status int) Fault {
	return Fault{answer: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<!DOCTYPE html><title>%d</title><p>No %s here.", status, r.URL.Path)
	}}
}

// Redirect sends the caller elsewhere with 307, which asks for the same body again.
func Redirect(to string) Fault {
	return Fault{answer: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}}
}

// jsonFault answers with a status, a Retry-After if after is not 0, and a body.
func jsonFault(status int, after time.Duration, body any) Fault {
	return Fault{answer: func(w http.ResponseWriter, _ *http.Request) {
		if after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		}
		writeJSON(w, status, body)
	}}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// faults are those ordered and not yet met, by whom they are meant for; "" is anyone.
type faults struct {
	mu     sync.Mutex
	queued map[string][]Fault
	always map[string]Fault
}

func (f *faults) queue(to string, more []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queued == nil {
		f.queued = map[string][]Fault{}
	}
	f.queued[to] = append(f.queued[to], more...)
}

func (f *faults) keep(to string, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.always == nil {
		f.always = map[string]Fault{}
	}
	f.always[to] = fault
}

func (f *faults) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.queued)
	clear(f.always)
}

// next takes the fault that a call to this addressee meets, if any: the queued
// before the lasting, the addressee's own before anyone's.
func (f *faults) next(to string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range []string{to, ""} {
		if q := f.queued[key]; len(q) > 0 {
			f.queued[key] = q[1:]
			return q[0], true
		}
	}
	for _, key := range []string{to, ""} {
		if fault, ok := f.always[key]; ok {
			return fault, true
		}
	}
	return Fault{}, false
}
