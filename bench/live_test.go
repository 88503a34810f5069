package main

import (
	"context"
	"errors"
	"testing"
)

func TestAWriteThatWasNotSeenIsNoFigure(t *testing.T) {
	s := &sightings{at: map[int]int64{}}
	s.add(1, 3_000_000)
	s.add(1, 9_000_000) // a second sighting is none
	took, err := s.since(map[int]int64{1: 1_000_000})
	if err != nil || len(took) != 1 || took[0] != 2 {
		t.Errorf("took %v, %v", took, err)
	}
	if took, err := s.since(map[int]int64{1: 1_000_000, 2: 1_000_000}); err == nil {
		t.Errorf("took %v though write 2 was never seen", took)
	}
}

func TestAStreamKeepsItsPaceWhateverAWriteTakes(t *testing.T) {
	s := &sightings{at: map[int]int64{}}
	slow := make(chan struct{})
	starts, err := s.streamed(context.Background(), 10, 20, 1000, func(number int) error {
		if number == 29 {
			close(slow) // the last one comes though the first has not ended
		}
		if number == 10 {
			<-slow
		}
		s.add(number, monotonic())
		return nil
	})
	if err != nil || len(starts) != 20 {
		t.Errorf("%d writes, %v", len(starts), err)
	}
}

func TestAWriteThatFailsFailsTheStream(t *testing.T) {
	refused := errors.New("refused")
	s := &sightings{at: map[int]int64{}}
	if _, err := s.streamed(context.Background(), 0, 3, 1000, func(n int) error {
		s.add(n, monotonic())
		if n == 1 {
			return refused
		}
		return nil
	}); !errors.Is(err, refused) {
		t.Errorf("err = %v", err)
	}
}
