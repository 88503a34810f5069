package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tandem/internal/fault"
)

var errTaken = fault.New(fault.Conflict, "taken", "That name is taken; choose another than %q.", "ada")

func TestAFaultIsItselfWhateverItHasLearnedSince(t *testing.T) {
	learned := fmt.Errorf("saving: %w", errTaken.Because(errors.New("UNIQUE")).In("name", "is taken").After(time.Second))
	if !errors.Is(learned, errTaken) || errors.Is(learned, fault.New(fault.Conflict, "other", "")) {
		t.Error("it is known by its code")
	}
	f := fault.From(learned)
	if f.Detail != `That name is taken; choose another than "ada".` || f.RetryAfter != time.Second || len(f.Fields) != 1 || !fault.Of(learned, fault.Conflict) {
		t.Errorf("%+v", f)
	}
	if len(errTaken.Fields) != 0 || errTaken.Unwrap() != nil {
		t.Error("what one request learned is in the next one's")
	}
}

func TestWhatIsNoFaultIsInternalAndKeepsItsTextFromPeople(t *testing.T) {
	cause := errors.New("password hunter2")
	f := fault.From(cause)
	if f.Kind != fault.Internal || f.Code != "internal" || strings.Contains(f.Detail, "hunter2") || !errors.Is(f, cause) || !strings.Contains(f.Error(), "hunter2") {
		t.Errorf("%+v", f)
	}
	if fault.Of(nil, fault.Internal) {
		t.Error("nil is no fault")
	}
}

func TestFieldsOfTwoCopiesDoNotMix(t *testing.T) {
	one := errTaken.In("a", "x")
	two, three := one.In("b", "y"), one.In("c", "z")
	if two.Fields[1].Name != "b" || three.Fields[1].Name != "c" || len(one.Fields) != 1 {
		t.Error(one.Fields, two.Fields, three.Fields)
	}
}
