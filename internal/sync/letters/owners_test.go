package letters_test

import (
	"testing"

	"tandem/internal/sqlite"
	"tandem/internal/sync/letters"
)

func TestLettersGoOverToTheAccountOfThePair(t *testing.T) {
	home := newNode(t)
	home.send(letter("a", "ann"), letter("b", "ben"))
	for range 2 { // done twice, it is done once
		must(t, home.db.Write(t.Context(), func(tx *sqlite.Tx) error {
			return letters.MoveOwnersTx(tx, map[string]string{"ann": "ann at the cloud"})
		}))
		oldest, _, err := home.box.Oldest(t.Context(), 10)
		must(t, err)
		equal(t, "letters", len(oldest), 2)
		equal(t, "owner", oldest[0].Owner, "ann at the cloud")
		equal(t, "owner", oldest[1].Owner, "ben")
	}
}

// A copy sends nothing of what the node it comes from is to send, and does nothing
// twice that was done there.
func TestAnAdoptedFileSendsNoLetterOfTheOtherNode(t *testing.T) {
	cloud, home := newNode(t), newNode(t)
	cloud.send(letter("a", "ann"))
	cross(cloud, home)
	home.send(letter("b", "ann"))
	must(t, home.db.Write(t.Context(), letters.AdoptTx))
	home.restart()
	equal(t, "waits", home.waits(), false)
	home.receive(call{letters: []letters.Letter{letter("a", "ann")}})
	equal(t, "done", home.done(), "a")
}
