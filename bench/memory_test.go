package main

import (
	"os"
	"testing"
	"time"
)

func TestStatusGivesResidentAndPeakInMebibytes(t *testing.T) {
	got, err := parseStatus("Name:\ttandem\nVmPeak:\t 1267740 kB\nVmHWM:\t   92160 kB\nVmRSS:\t   46592 kB\nRssAnon:\t 1 kB\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := (memory{resident: 45.5, peak: 90}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStatusThatSaysNothingIsAnError(t *testing.T) {
	for _, status := range []string{
		"",
		"Name:\tzombie\nState:\tZ (zombie)\n",
		"VmHWM:\t 92160 kB\n",
		"VmHWM:\t 92160 kB\nVmRSS:\tmany kB\n",
		"VmHWM:\t 92160 kB\nVmRSS:\t 45 MB\n",
	} {
		if got, err := parseStatus(status); err == nil {
			t.Errorf("%q: taken as %+v", status, got)
		}
	}
}

func TestCPUIsWhatTheProcessAndTheKernelTook(t *testing.T) {
	got, err := parseStat("4711 (a) b) S 1 4711 4711 0 -1 4194560 2 0 0 0 250 31 7 8 20 0 1 0 5 6 7")
	if err != nil || got != 2810*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, stat := range []string{"", "1 (x) S 1 2", "1 (x) S 1 1 1 0 -1 1 2 0 0 0 many 31 7 8"} {
		if got, err := parseStat(stat); err == nil {
			t.Errorf("%q: taken as %v", stat, got)
		}
	}
}

func TestMemoryOfThisProcessIsRead(t *testing.T) {
	got, err := readMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.resident < 1 || got.peak < got.resident {
		t.Errorf("%+v", got)
	}
}
