package users

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tandem/internal/fault"
	"tandem/internal/sqlite"
)

// Role is what an account may do.
type Role string

// The roles.
const (
	Admin Role = "admin" // also what concerns other accounts and the node
	User  Role = "user"
)

// Account is a person as the node knows them. Its id is the owner of rows in the
// other files.
type Account struct {
	ID         string
	Email      string // normalised
	Role       Role
	DisabledAt *time.Time // nil while the account is good
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// accountColumns are what scanAccount reads.
const accountColumns = `id, email, role, disabled_at, created_at, updated_at`

func scanAccount(r sqlite.Row) (Account, error) {
	var a Account
	var disabled *int64
	var created, updated int64
	err := r.Scan(&a.ID, &a.Email, &a.Role, &disabled, &created, &updated)
	a.DisabledAt, a.CreatedAt, a.UpdatedAt = sqlite.TimePtr(disabled), sqlite.Time(created), sqlite.Time(updated)
	return a, err
}

// Bounds of what a person may choose.
const (
	shortestPassword = 8   // characters, not bytes
	longestPassword  = 256 // characters
	longestEmail     = 254 // bytes, RFC 5321 section 4.5.3.1.3 less the angle brackets
)

// normalEmail returns the one spelling under which an address is stored and looked
// up, and whether it can be an address at all. Only what would break a look-up or a
// display is refused: the one proof of an address is a letter that arrives.
func normalEmail(typed string) (string, bool) {
	// Composing first may reveal a capital (the Kelvin sign), lowering may leave a
	// pair that composes.
	email := norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(typed))))
	name, domain, _ := strings.Cut(email, "@")
	ok := utf8.ValidString(typed) && len(email) <= longestEmail &&
		name != "" && domain != "" && !strings.Contains(domain, "@") &&
		!strings.ContainsFunc(email, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	return email, ok
}

// normalPassword is what is hashed: composed, since the same keys give an accent in
// one piece on one system and in two on another. Nothing is trimmed or folded.
func normalPassword(typed string) string { return norm.NFC.String(typed) }

func passwordFits(typed string) bool {
	n := utf8.RuneCountInString(normalPassword(typed))
	return utf8.ValidString(typed) && !strings.ContainsRune(typed, 0) && n >= shortestPassword && n <= longestPassword
}

// errInvalid is completed by the fields that are wrong.
var errInvalid = fault.New(fault.Invalid, "invalid_account", "This e-mail or password cannot be used.")

func badEmail(e *fault.Error) *fault.Error {
	return e.In("email", "must be one address, such as ada@example.org")
}

func badPassword(e *fault.Error) *fault.Error {
	return e.In("password", "must be 8 to 256 characters of valid text, none of them NUL")
}
