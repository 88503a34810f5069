package main

import (
	"os"
	"testing"
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

func TestMemoryOfThisProcessIsRead(t *testing.T) {
	got, err := readMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.resident < 1 || got.peak < got.resident {
		t.Errorf("%+v", got)
	}
}
