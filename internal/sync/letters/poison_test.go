package letters_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tandem/internal/fault"
	"tandem/internal/sync/letters"
)

// text is a JSON string of so many bytes.
func text(size int) json.RawMessage {
	return fmt.Appendf(nil, "%q", strings.Repeat("x", size-2))
}

func TestLetterThatCannotBeAppliedIsParkedAndTheNextOnesGoOn(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	var want []string
	for _, kind := range []fault.Kind{fault.Malformed, fault.Invalid, fault.NotFound, fault.Conflict, fault.Stale, fault.TooLarge} {
		key := string(kind)
		home.refuse[key] = fault.New(kind, "no_"+key, "It is %s.", kind).Because(errors.New("canary"))
		cloud.send(letter(key, "ann"), letter("after "+key, "ann"))
		want = append(want, "after "+key)
	}
	equal(t, "crossed", cross(cloud, home), 12)
	equal(t, "done", home.done(), strings.Join(want, " "))
	equal(t, "waits", cloud.waits(), false)
	equal(t, "parked", home.parked(), "too_large: no_too_large, stale: no_stale, conflict: no_conflict, not_found: no_not_found, invalid: no_invalid, malformed: no_malformed")
	all, err := home.box.Parked(t.Context(), 1)
	must(t, err)
	equal(t, "parked last", fmt.Sprintf("%s %s %s %q", all[0].Owner, all[0].Kind, all[0].Code, all[0].Detail), `ann message no_too_large "It is too_large."`)
	equal(t, "kept of it", string(home.kept("too_large")), `{"text":"hello"}`)
	equal(t, "acked when it comes again", home.receive(call{letters: []letters.Letter{letter("conflict", "ann")}}), "conflict")
	equal(t, "parked", home.count("letters_parked"), 6)
}

func TestErrorThatMayPassParksNothing(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	for i, err := range []error{
		errBusy, fault.New(fault.Internal, "x", "x").Because(errBusy), fault.New(fault.Unavailable, "x", "x").Because(errBusy),
		fault.New(fault.TooMany, "x", "x").Because(errBusy), fault.New(fault.Unauthenticated, "x", "x").Because(errBusy),
	} {
		key := fmt.Sprint(i)
		home.refuse[key] = err
		cloud.send(letter(key, "owner "+key))
	}
	cross(cloud, home)
	equal(t, "offered", keys(cloud.offered()), "0 1 2 3 4")
	clear(home.refuse)
	cross(cloud, home)
	equal(t, "done", home.done(), "0 1 2 3 4")
	equal(t, "parked", home.parked(), "")
}

// S:42. What one letter is like is no reason to refuse those beside it.
func TestBadLetterDoesNotBlockThoseBesideIt(t *testing.T) {
	for name, c := range map[string]struct{ bad, acked, parked string }{
		"no object":       {`5`, "", ""},
		"null":            {`null`, "", ""},
		"no key":          {`{"owner":"ann","kind":"message","body":{}}`, "", ""},
		"a key of 5":      {`{"key":5,"owner":"ann","kind":"message","body":{}}`, "", ""},
		"no owner":        {`{"key":"x","kind":"message","body":{}}`, "x ", "x: letter_malformed"},
		"an owner of 5":   {`{"key":"x","owner":5,"kind":"message","body":{}}`, "x ", "x: letter_malformed"},
		"an empty kind":   {`{"key":"x","owner":"ann","kind":"","body":{}}`, "x ", "x: letter_malformed"},
		"no body":         {`{"key":"x","owner":"ann","kind":"message"}`, "x ", "x: letter_malformed"},
		"NUL in the body": {`{"key":"x","owner":"ann","kind":"message","body":["a\u0000b"]}`, "x ", "x: letter_malformed"},
		"NUL in the key":  {`{"key":"x\u0000","owner":"ann","kind":"message","body":{}}`, "x\x00 ", "x\uFFFD: letter_malformed"},
		"no UTF-8":        {"{\"key\":\"x\",\"owner\":\"ann\",\"kind\":\"message\",\"body\":\"\xff\"}", "x ", "x: letter_malformed"},
		"a long key":      {`{"key":"` + strings.Repeat("k", 201) + `","owner":"ann","kind":"message","body":{}}`, strings.Repeat("k", 201) + " ", strings.Repeat("k", 200) + ": letter_malformed"},
		"a long body":     {`{"key":"x","owner":"ann","kind":"message","body":` + string(text(letters.MaxBody+1)) + `}`, "x ", "x: letter_malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			home := newNode(t)
			var page []letters.Letter
			must(t, json.Unmarshal([]byte(`[`+c.bad+`,{"key":"good","owner":"ann","kind":"message","body":{}}]`), &page))
			ack, err := home.box.Receive(t.Context(), "", page)
			equal(t, "acked", strings.Join(ack, " "), c.acked+"good")
			equal(t, "an error, as it comes again", errors.Is(err, letters.ErrMalformed), c.acked == "")
			equal(t, "done", home.done(), "good")
			equal(t, "parked", home.parked(), c.parked)
		})
	}
}

func TestLetterThatTheOtherNodeWouldRefuseIsNotSent(t *testing.T) {
	cloud := newNode(t)
	long := strings.Repeat("x", letters.MaxName+1)
	for name, l := range map[string]letters.Letter{
		"no key":     {Owner: "ann", Kind: "message", Body: text(9)},
		"no owner":   {Key: "x", Kind: "message", Body: text(9)},
		"no kind":    {Key: "x", Owner: "ann", Body: text(9)},
		"no body":    {Key: "x", Owner: "ann", Kind: "message"},
		"long key":   {Key: long, Owner: "ann", Kind: "message", Body: text(9)},
		"long owner": {Key: "x", Owner: long, Kind: "message", Body: text(9)},
		"long kind":  {Key: "x", Owner: "ann", Kind: long, Body: text(9)},
		"long body":  {Key: "x", Owner: "ann", Kind: "message", Body: text(letters.MaxBody + 1)},
		"no JSON":    {Key: "x", Owner: "ann", Kind: "message", Body: json.RawMessage(`{`)},
		"no UTF-8":   {Key: "x", Owner: "ann", Kind: "message", Body: json.RawMessage("\"\xff\"")},
		"bad key":    {Key: "x\xff", Owner: "ann", Kind: "message", Body: text(9)},
		"NUL":        {Key: "x\x00", Owner: "ann", Kind: "message", Body: text(9)},
		"NUL inside": {Key: "x", Owner: "ann", Kind: "message", Body: json.RawMessage(`"a\u0000"`)},
	} {
		if err := cloud.trySend(l); !errors.Is(err, letters.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "waits", cloud.waits(), false)
	for i, body := range []string{`null`, `"a\\u0000"`, `["\\",{"\"":"\u00e9 ☕"}]`, string(text(letters.MaxBody))} {
		cloud.send(letters.Letter{Key: fmt.Sprint(i), Owner: strings.Repeat("x", letters.MaxName), Kind: "message", Body: json.RawMessage(body)})
	}
	equal(t, "offered", keys(cloud.offered()), "0 1 2 3")
}

// S:56, S:57. On its way a text gains escapes and loses white space; it is measured by
// what it says.
func TestTextIsAsLargeAtTheOtherNode(t *testing.T) {
	for name, unit := range map[string]string{"<": "<", "quotes": `"`, "separators": "\u2028", "emoji": "👩‍🚀", "white space": " ", "backslashes": `\`} {
		t.Run(name, func(t *testing.T) {
			cloud, home := newNode(t), newNode(t)
			var body bytes.Buffer
			e := json.NewEncoder(&body)
			e.SetEscapeHTML(false)
			must(t, e.Encode(strings.Repeat(unit, (letters.MaxBody-2)/len(unit))))
			l := letter("a", "ann")
			l.Body = body.Bytes()
			cloud.send(l)
			cross(cloud, home)
			equal(t, "parked", home.parked(), "")
			equal(t, "done", home.done(), "a")
		})
	}
}

// Written by something else than this version, and yet in the file.
func TestLetterThatCannotBeSentIsParkedWhereItIs(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.exec(`INSERT INTO letters_sent (key, owner, kind, body) VALUES ('bad', 'ann', 'message', CAST(x'22ff22' AS TEXT)), ('none', 'ann', 'message', '')`)
	cloud.send(letter("a", "ann"))
	cross(cloud, home)
	equal(t, "done", home.done(), "a")
	equal(t, "waits", cloud.waits(), false)
	equal(t, "parked", cloud.parked(), "none: letter_malformed, bad: letter_malformed")
	equal(t, "kept of it", string(cloud.kept("bad")), "\"\xff\"")
	must(t, cloud.box.OfferAgain(t.Context(), cloud.offered().after))
	equal(t, "offered", keys(cloud.offered()), "a")
}

// A node that is older than its peer keeps what only a newer one can do.
func TestLetterOfAnUnknownKindActsOnceAfterAnUpgrade(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	knows := home.box
	home.box = letters.NewBox(home.db, letters.Options{})
	long := letter("d", "ben")
	long.Body = fmt.Appendf(nil, `"%s"`, strings.Repeat("<", letters.MaxBody-2)) // longer on its way
	cloud.send(letter("a", "ann"), letter("b", "ann"), letter("c", "ben"), long)
	cross(cloud, home)
	equal(t, "waits", cloud.waits(), false)
	equal(t, "parked", home.count("letters_parked"), 4)
	all, err := home.box.Parked(t.Context(), 1)
	must(t, err)
	equal(t, "kept of the last", all[0].Key, "d")
	var text string
	must(t, json.Unmarshal(home.kept("d"), &text))
	equal(t, "its length", len(text), letters.MaxBody-2)
	equal(t, "done", home.done(), "")

	home.refuse["b"] = fault.New(fault.NotFound, "run_not_found", "There is no such run.")
	home.refuse["c"] = errBusy
	home.box = knows
	if _, err := home.box.Receive(t.Context(), "", nil); !errors.Is(err, errBusy) {
		t.Errorf("the failure is told: %v", err)
	}
	equal(t, "done", home.done(), "a d")
	equal(t, "parked", home.parked(), "c: letter_of_unknown_kind, b: run_not_found")
	clear(home.refuse)
	for range 2 {
		equal(t, "acked", home.receive(call{letters: []letters.Letter{letter("a", "ann"), letter("b", "ann")}}), "a b")
	}
	equal(t, "done", home.done(), "a d c")
	equal(t, "parked", home.parked(), "b: run_not_found")
}
