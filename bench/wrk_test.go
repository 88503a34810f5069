package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWrkReportIsReadAmongWhatWrkSays(t *testing.T) {
	out := `Running 8s test @ http://127.0.0.1:8090
  2 threads and 16 connections
Requests/sec:   2500.10
bench {"requests":20000,"micros":8000000,"p50":5900,"p99":37250,"refused":0,"broken":0,"late":0}
`
	got, err := parseWrk([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	want := outcome{perSecond: 2500, p50: 5900 * time.Microsecond, p99: 37250 * time.Microsecond}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOneFailedRequestIsNoFigure(t *testing.T) {
	for name, line := range map[string]string{
		"refused":   `bench {"requests":9,"micros":8,"p50":1,"p99":2,"refused":1,"broken":0,"late":0}`,
		"broken":    `bench {"requests":9,"micros":8,"p50":1,"p99":2,"refused":0,"broken":1,"late":0}`,
		"late":      `bench {"requests":9,"micros":8,"p50":1,"p99":2,"refused":0,"broken":0,"late":1}`,
		"no answer": `bench {"requests":0,"micros":8,"p50":0,"p99":0,"refused":0,"broken":0,"late":0}`,
		"cut short": `bench {"requests":9,"mic`,
		"silent":    `Running 8s test`,
	} {
		if got, err := parseWrk([]byte(line)); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
}

// The scripts themselves: what arrives at a server is what both contenders get.
func TestLoadSendsTokenPathsAndBodies(t *testing.T) {
	if err := findWrk(); err != nil {
		t.Skip(err)
	}
	wrong := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		creates := r.Method == "POST" && r.URL.Path == "/make" && r.ContentLength > 50
		reads := r.Method == "GET" && (r.RequestURI == "/one?a=1&b=2" || r.RequestURI == "/two")
		if r.Header.Get("Authorization") != "Bearer key" || !creates && !reads {
			select {
			case wrong <- r.Method + " " + r.RequestURI:
			default:
			}
		}
	}))
	defer server.Close()
	for _, l := range []load{
		{script: "create", token: "key", paths: []string{"/make"}, connections: 2, seconds: 1},
		{script: "read", token: "key", paths: []string{"/one?a=1&b=2", "/two"}, connections: 2, seconds: 1},
	} {
		out, err := l.run(context.Background(), server.URL, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if out.perSecond < 1 || out.p50 <= 0 || out.p99 < out.p50 {
			t.Errorf("%s: %+v", l.script, out)
		}
	}
	select {
	case request := <-wrong:
		t.Errorf("a server got %s", request)
	default:
	}
}

func TestServerThatRefusesFailsTheRun(t *testing.T) {
	if err := findWrk(); err != nil {
		t.Skip(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	l := load{script: "read", token: "key", paths: []string{"/gone"}, connections: 2, seconds: 1}
	if _, err := l.run(context.Background(), server.URL, t.TempDir()); err == nil || !strings.Contains(err.Error(), "status 400 or more") {
		t.Errorf("err = %v", err)
	}
}
