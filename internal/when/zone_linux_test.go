package when

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// R:A10 in a directory that holds the binary and the vectors, and nothing else:
// no zone lies on this disk, and the schedules ring all the same.
func TestZonesNeedNoFilesOnDisk(t *testing.T) {
	root := t.TempDir()
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "when.test"), binary, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil { // for a binary that counts coverage
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(root, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/when.test", "-test.v", "-test.run=^(TestScheduleRingsWhenTheVectorsSay|TestZoneIsAnIANANameOrRefused)$")
	cmd.Dir = "/"
	cmd.Env = []string{"ZONEINFO=/nowhere", "TZ=Asia/Kolkata"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if id := os.Getuid(); id != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this system lets no test change its root directory")
	}
	if errors.Is(err, syscall.ENOENT) {
		t.Skip("this binary needs libraries from the disk: build it with CGO_ENABLED=0")
	}
	if ran := strings.Count(string(out), "\n--- PASS"); err != nil || ran != 2 {
		t.Errorf("%v, %d of 2 tests passed:\n%s", err, ran, out)
	}
}
