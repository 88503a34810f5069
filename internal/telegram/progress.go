package telegram

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"

	"tandem/internal/push"
)

// mostUnfinished bounds the memory. What is dropped is repeated from its first part, never lost.
const mostUnfinished = 256

// progress remembers texts of which a chat has the first parts only. Parts are
// compared by what they say: a note that a retry adds at the end repeats none.
type progress struct {
	mu         sync.Mutex
	unfinished map[string][]sentPart
}

type sentPart struct {
	digest [sha256.Size]byte
	id     string
}

// unfinishedKey names a fire on its way to a chat.
func unfinishedKey(chat int64, fireID string) string {
	return strconv.FormatInt(chat, 10) + " " + fireID
}

// sent returns the ids of those first parts that the chat already has.
func (p *progress) sent(key string, parts []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for i, s := range p.unfinished[key] {
		if i == len(parts) || s.digest != sha256.Sum256([]byte(parts[i])) {
			break
		}
		ids = append(ids, s.id)
	}
	return ids
}

// keep remembers which parts were sent before err, unless err ends the matter.
func (p *progress) keep(key string, parts, ids []string, err error) {
	f, ok := errors.AsType[*push.Failure](err)
	if len(ids) == 0 || ok && (f.Verdict == push.Rejected || f.Verdict == push.Unregistered) {
		p.forget(key)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished == nil {
		p.unfinished = map[string][]sentPart{}
	}
	for other := range p.unfinished {
		if len(p.unfinished) < mostUnfinished {
			break
		}
		delete(p.unfinished, other)
	}
	done := make([]sentPart, len(ids))
	for i, id := range ids {
		done[i] = sentPart{digest: sha256.Sum256([]byte(parts[i])), id: id}
	}
	p.unfinished[key] = done
}

func (p *progress) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.unfinished, key)
}
