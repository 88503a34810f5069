package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// crowd are as many requests at a time as it takes to keep a node busy.
const crowd = 64

// client keeps the connections of a crowd.
var client = func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = crowd
	return &http.Client{Transport: t, Timeout: 30 * time.Second}
}()

// session is a login at a server.
type session struct {
	*server
	token string
}

func (s *server) logIn() (session, error) {
	var answer struct{ Token string }
	if err := s.ask(http.MethodPost, s.login, "", s.loginBody, http.StatusOK, &answer); err != nil {
		return session{}, err
	}
	if answer.Token == "" {
		return session{}, fmt.Errorf("%s: the login gave no token", s.name)
	}
	return session{server: s, token: answer.Token}, nil
}

// add makes one todo and returns its id. It checks the exact status, which wrk
// cannot: before each load one request of its kind must have gone right.
func (s session) add(content string) (string, error) {
	body := map[string]string{"content": content, "due_at": "2026-12-01T09:00:00Z"}
	var row map[string]any
	if err := s.ask(http.MethodPost, s.create, s.token, body, s.made, &row); err != nil {
		return "", err
	}
	id, _ := row[s.id].(string)
	if id == "" {
		return "", fmt.Errorf("%s: a new row without %q", s.name, s.id)
	}
	return id, nil
}

// see fetches one row.
func (s session) see(id string) error {
	return s.ask(http.MethodGet, s.view(id), s.token, nil, http.StatusOK, nil)
}

// page fetches a list, which must hold 50 rows.
func (s session) page(path string) error {
	var answer struct{ Items []json.RawMessage }
	if err := s.ask(http.MethodGet, path, s.token, nil, http.StatusOK, &answer); err != nil {
		return err
	}
	if len(answer.Items) != 50 {
		return fmt.Errorf("%s: %s gave %d rows", s.name, path, len(answer.Items))
	}
	return nil
}

// ask sends body unless it is nil, and decodes the answer unless into is nil.
func (s *server) ask(method, path, token string, body any, want int, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, s.base()+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != want {
		return fmt.Errorf("%s: %s %s: %s, wanted %d: %.300s", s.name, method, path, res.Status, want, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
