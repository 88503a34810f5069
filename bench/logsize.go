package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
)

// logSize edits 100 todos 10,000 times, then reads the log as a peer does that has
// never read it. An edit moves a row within the log, so that it has as many entries
// as there are rows, and the file is as large as before.
func (b *bench) logSize(ctx context.Context) (err error) {
	const todos, edits = 100, 10_000
	p, err := b.newPair("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := p.cloud.enrol(ctx, p.cloud.at); err != nil {
		return err
	}
	if err := p.cloud.run(ctx); err != nil {
		return err
	}
	in, err := p.cloud.s.logIn()
	if err != nil {
		return err
	}
	ids, err := in.addAll(todos)
	if err != nil {
		return err
	}
	if err := in.edit(ids, edits/10); err != nil { // until each text has had its longest
		return err
	}
	w, err := p.cloud.look(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	before, err := w.size(ctx)
	if err != nil {
		return err
	}
	if err := in.edit(ids, edits); err != nil {
		return err
	}
	after, err := w.size(ctx)
	if err != nil {
		return err
	}
	read, err := p.readLog(ctx)
	if err != nil {
		return err
	}
	b.figures.add(ours, logSize, entryCount, float64(read))
	b.figures.add(ours, logSize, fileGrowth, float64(after-before)/1024)
	return nil
}

func (s session) addAll(n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		id, err := s.add(sentence(i))
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// edit gives the todos new texts, so many in all.
func (s session) edit(ids []string, edits int) error {
	var all sync.WaitGroup
	failed := make([]error, len(ids))
	for k, id := range ids {
		all.Go(func() {
			for i := 0; i < edits/len(ids) && failed[k] == nil; i++ {
				body := map[string]string{"content": sentence(k*edits + i)}
				failed[k] = s.ask(http.MethodPatch, s.view(id), s.token, body, http.StatusOK, nil)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// readLog reads the cloud's log from its start to its end, and returns how many
// entries it has.
func (p *pair) readLog(ctx context.Context) (int, error) {
	secret, err := os.ReadFile(p.secret())
	if err != nil {
		return 0, err
	}
	read := 0
	for cursor := ""; ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.cloud.at.base()+"/peer/v1/changes?wait=0s&cursor="+url.QueryEscape(cursor), nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		req.Header.Set("Tandem-Node", "home")
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		var page struct {
			Rows   []json.RawMessage
			Cursor string
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return 0, err
		}
		if res.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("the log answered %s", res.Status)
		}
		if len(page.Rows) == 0 {
			return read, nil
		}
		read += len(page.Rows)
		cursor = page.Cursor
	}
}
