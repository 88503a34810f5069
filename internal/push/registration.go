package push

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
	"tandem/internal/sync"
)

// Registration is what an installation of the app says of itself.
type Registration struct {
	Token    string // the push service's address of it: 1 to 4096 visible ASCII characters
	Platform string // android, ios or web
	DeviceID string // made by the app when it is installed: 1 to 128 visible ASCII characters
}

// Device is an installation as its owner sees it. The token stays in the file.
type Device struct {
	DeviceID     string
	Platform     string
	RegisteredAt time.Time // since when this token, device and owner belong together
}

// errToken is completed by the fields that are wrong.
var errToken = fault.New(fault.Invalid, "push_token_invalid", "This device cannot be registered.")

// maxDevices bounds what one person may have ring: each ringing tells of all of them
// in one fact, and the set crosses whole.
const maxDevices = 50

var errTooMany = fault.New(fault.Conflict, "too_many_devices", "%d devices ring for you already. Have one ring no more, then register this one.", maxDevices)

func (r Registration) check() error {
	f := errToken
	if !visible(r.Token, 4096) {
		f = f.In("token", "must be 1 to 4096 visible ASCII characters")
	}
	if r.Platform != "android" && r.Platform != "ios" && r.Platform != "web" {
		f = f.In("platform", "must be android, ios or web")
	}
	if !visible(r.DeviceID, 128) {
		f = f.In("device_id", "must be 1 to 128 visible ASCII characters")
	}
	if len(f.Fields) == 0 {
		return nil
	}
	return f
}

func visible(s string, longest int) bool {
	return s != "" && len(s) <= longest && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Registered is a registration as it is kept, and as it crosses between the nodes.
type Registered struct {
	Token        string   `json:"token"`
	Platform     string   `json:"platform"`
	DeviceID     string   `json:"device_id"`
	Owner        string   `json:"owner"`
	Registration sync.UID `json:"registration"`
	RegisteredAt int64    `json:"registered_at"` // Unix ms
	UpdatedAt    int64    `json:"updated_at"`
}

const registeredColumns = `token, platform, device_id, owner, registration, registered_at, updated_at`

func scanRegistered(r sqlite.Row) (v Registered, err error) {
	return v, r.Scan(&v.Token, &v.Platform, &v.DeviceID, &v.Owner, &v.Registration, &v.RegisteredAt, &v.UpdatedAt)
}

func (r Registered) args() []any {
	return []any{r.Token, r.Platform, r.DeviceID, r.Owner, r.Registration[:], r.RegisteredAt, r.UpdatedAt}
}

func (r Registered) device() Device {
	return Device{r.DeviceID, r.Platform, sqlite.Time(r.RegisteredAt)}
}

// sound reports whether a registration from the other node may be kept.
func (r Registered) sound() bool {
	return Registration{r.Token, r.Platform, r.DeviceID}.check() == nil && r.Owner != "" &&
		r.Registration != sync.UID{} && r.RegisteredAt > 0 && r.UpdatedAt > 0
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
