package letters_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

func TestLetterCrossesAndActsOnce(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	cloud.send(letter("a", "ann"), letter("b", "ann"))
	equal(t, "woken", cloud.woken, 2)
	cloud.send(letter("a", "ann")) // done twice
	equal(t, "woken by the same letter", cloud.woken, 2)
	equal(t, "crossed", cross(cloud, home), 2)
	equal(t, "done", home.done(), "a b")
	equal(t, "waits", cloud.waits(), false)
	cloud.send(letter("a", "ann"))
	equal(t, "crossed again", cross(cloud, home), 0)
	equal(t, "done", home.done(), "a b")
}

func TestLetterOfATransactionThatFailedIsNotSent(t *testing.T) {
	cloud := newNode(t, "c1")
	err := cloud.db.Write(t.Context(), func(tx *sqlite.Tx) error { return errors.Join(cloud.box.SendTx(tx, letter("a", "ann")), errBusy) })
	if !errors.Is(err, errBusy) {
		t.Error(err)
	}
	equal(t, "waits", cloud.waits(), false)
	equal(t, "woken", cloud.woken, 0)
}

// The ack is lost on its way, again and again, and both nodes are started anew.
func TestAckThatWasLostRepeatsNothing(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	must(t, cloud.box.OfferAgain(t.Context(), "h1"))
	cloud.send(letter("a", "ann"), letter("b", "ben"))
	for range 3 {
		equal(t, "acked", home.receive(cloud.offered()), "a b")
		home.restart()
		cloud.restart()
		equal(t, "waits", cloud.waits(), true)
	}
	equal(t, "done", home.done(), "a b")
	cross(cloud, home)
	equal(t, "waits", cloud.waits(), false)
	equal(t, "done", home.done(), "a b")
}

// A process that dies within the handler leaves neither its effect nor the key.
func TestDeathWithinTheHandlerLeavesNothing(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	cloud.send(letter("a", "ann"))
	home.refuse["a"] = errBusy
	cross(cloud, home)
	equal(t, "done", home.done(), "")
	home.restart()
	delete(home.refuse, "a")
	cross(cloud, home)
	equal(t, "done", home.done(), "a")
}

func TestOwnerWhoseLetterFailsStopsAndNobodyElseDoes(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	cloud.send(letter("a1", "ann"), letter("a2", "ann"), letter("b1", "ben"), letter("a3", "ann"), letter("b2", "ben"))
	home.refuse["a2"] = fault.New(fault.Unavailable, "model_away", "The model is away.").Because(errBusy)
	must(t, cloud.box.OfferAgain(t.Context(), "h1"))
	ack, err := home.box.Receive(t.Context(), cloud.offered())
	equal(t, "acked", fmt.Sprint(ack), "[a1 b1 b2]")
	if !errors.Is(err, errBusy) {
		t.Errorf("the failure is told: %v", err)
	}
	must(t, cloud.box.Acked(t.Context(), "h1", ack))
	equal(t, "offered", keys(cloud.offered()), "a2 a3")
	delete(home.refuse, "a2")
	cross(cloud, home)
	equal(t, "done", home.done(), "a1 b1 b2 a2 a3")
}

func TestOwnerWithManyLettersDoesNotFillEachCall(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	home.refuse["a0"] = errBusy
	for i := range 150 {
		cloud.send(letter(fmt.Sprint("a", i), "ann"))
	}
	cloud.send(letter("b0", "ben"), letter("b1", "ben"))
	cross(cloud, home)
	equal(t, "done", home.done(), "b0 b1")
	delete(home.refuse, "a0")
	equal(t, "crossed", cross(cloud, home), 100)
	equal(t, "crossed", cross(cloud, home), 50)
	equal(t, "waits", cloud.waits(), false)
	want := "b0 b1"
	for i := range 150 {
		want += fmt.Sprint(" a", i)
	}
	equal(t, "done", home.done(), want)
}

// A call that was delayed comes after a later one, and one comes twice at once.
func TestLettersThatComeInAnotherOrderActOnceAndInTheirs(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	must(t, cloud.box.OfferAgain(t.Context(), "h1"))
	cloud.send(letter("a", "ann"), letter("b", "ann"))
	delayed := cloud.offered()
	cloud.send(letter("c", "ann"))
	equal(t, "acked", home.receive(cloud.offered()), "a b c")
	equal(t, "acked", home.receive(delayed), "a b")
	equal(t, "acked", home.receive(append(delayed, delayed...)), "a b a b")
	equal(t, "done", home.done(), "a b c")
	must(t, cloud.box.Acked(t.Context(), "h1", []string{"a", "c", "a", "unknown"}))
	equal(t, "offered", keys(cloud.offered()), "b")
	must(t, cloud.box.Acked(t.Context(), "h1", nil))
}

func TestLettersOfOneCallAreBoundedInBytes(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	for i := range 9 {
		l := letter(fmt.Sprint(i), []string{"ann", "ben"}[i%2])
		l.Body = text(200 << 10)
		cloud.send(l)
	}
	for _, want := range []int{5, 4, 0} {
		equal(t, "crossed", cross(cloud, home), want)
	}
	equal(t, "done", home.done(), "0 1 2 3 4 5 6 7 8")
}

// What came by the end of one life may be gone in the next; what did not is there.
func TestReaderThatWasPutBackIsOfferedAgainWhatItLost(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	cloud.send(letter("a", "ann"))
	cross(cloud, home)
	old := home.backup()
	cloud.send(letter("b", "ann"), letter("c", "ann"))
	cross(cloud, home)
	equal(t, "done", home.done(), "a b c")
	home.restore(old, "h2")
	equal(t, "done", home.done(), "a")
	woken := cloud.woken
	equal(t, "crossed", cross(cloud, home), 3)
	equal(t, "woken", cloud.woken, woken+1)
	equal(t, "done", home.done(), "a b c")
	equal(t, "crossed after that", cross(cloud, home), 0)
}

// An ack that was under way while the reader was put back says nothing of its new life.
func TestAckOfAnotherLifeIsVoid(t *testing.T) {
	cloud, home := newNode(t, "c1"), newNode(t, "h1")
	must(t, cloud.box.OfferAgain(t.Context(), "h1"))
	old := home.backup()
	cloud.send(letter("a", "ann"))
	equal(t, "acked", home.receive(cloud.offered()), "a")
	home.restore(old, "h2")
	must(t, cloud.box.OfferAgain(t.Context(), "h2"))
	must(t, cloud.box.Acked(t.Context(), "h1", []string{"a"}))
	equal(t, "waits", cloud.waits(), true)
	cross(cloud, home)
	equal(t, "done", home.done(), "a")
}

func TestLetterIsKept30DaysAfterItsAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, home := newNode(t, "c1"), newNode(t, "h1")
		home.refuse["bad"] = fault.New(fault.Conflict, "already_answered", "You have already answered that.")
		for i := range 450 {
			cloud.send(letter(fmt.Sprint("a", i), "ann"))
		}
		cloud.send(letter("bad", "ann"))
		time.Sleep(100 * 24 * time.Hour) // the reader is away
		cloud.purge()
		equal(t, "kept", cloud.count("letters_sent"), 451)
		for cross(cloud, home) > 0 {
		}
		cloud.send(letter("late", "ann"))
		time.Sleep(30*24*time.Hour - time.Millisecond)
		must(t, cloud.box.Acked(t.Context(), "h1", []string{"a0"})) // again
		cloud.purge()
		home.purge()
		equal(t, "kept a little less than 30 days", cloud.count("letters_sent"), 452)
		equal(t, "parked", home.parked(), "bad: already_answered")
		time.Sleep(time.Millisecond)
		cloud.purge()
		home.purge()
		equal(t, "offered", keys(cloud.offered()), "late")
		equal(t, "kept after 30 days", cloud.count("letters_sent"), 1)
		equal(t, "parked", home.parked(), "")
	})
}

// A sender that was put back to long ago offers what both had forgotten.
func TestLetterActsOnceHoweverOldTheSendersBackupIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, home := newNode(t, "c1"), newNode(t, "h1")
		cloud.send(letter("a", "ann"))
		old := cloud.backup()
		cross(cloud, home)
		time.Sleep(300 * 24 * time.Hour)
		cloud.purge()
		home.purge()
		equal(t, "kept", cloud.count("letters_sent"), 0)
		cloud.restore(old, "c2")
		equal(t, "crossed", cross(cloud, home), 1)
		equal(t, "done", home.done(), "a")
		equal(t, "waits", cloud.waits(), false)
	})
}

func TestReceiveEndsWithItsCaller(t *testing.T) {
	home := newNode(t, "h1")
	ended, end := context.WithCancel(t.Context())
	end()
	ack, err := home.box.Receive(ended, []letters.Letter{letter("a", "ann"), letter("b", "ben")})
	if !errors.Is(err, context.Canceled) || len(ack) > 0 {
		t.Errorf("%v, %v", ack, err)
	}
	equal(t, "done", home.done(), "")
}
