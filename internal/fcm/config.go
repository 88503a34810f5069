package fcm

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"

	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"

	"tandem/internal/fault"
)

// scope is all that a node may do with the account.
const scope = "https://www.googleapis.com/auth/firebase.messaging"

// projectID is what stands in the path of every call; older projects carry a domain.
var projectID = regexp.MustCompile(`^[a-zA-Z0-9.:_-]+$`)

// settings are options that hold together.
type settings struct {
	account  *jwt.Config // nil: no login
	project  string
	endpoint string // no trailing slash; empty: Google's
}

func (o Options) check() (settings, error) {
	s := settings{project: o.ProjectID, endpoint: strings.TrimRight(o.Endpoint, "/")}
	var wrong *fault.Error
	note := func(field, detail string) {
		if wrong == nil {
			wrong = configFault(field, detail)
		} else {
			wrong.Detail += "; " + field + ": " + detail
			wrong = wrong.In(field, detail)
		}
	}
	if o.Endpoint != "" && !baseURL(o.Endpoint) {
		note("push.fcm.endpoint", "must be an http or https URL without a query")
	}
	if o.CredentialsFile == "" && o.Endpoint == "" {
		note("push.fcm.credentials_file", "is missing; only a stand-in at push.fcm.endpoint takes messages without a login")
	}
	if o.CredentialsFile != "" {
		account, project, err := readAccount(o.CredentialsFile)
		if err != nil {
			note("push.fcm.credentials_file", err.Error())
		}
		s.account = account
		if s.project == "" {
			s.project = project
		}
	}
	switch {
	case s.project == "" && wrong == nil:
		note("push.fcm.project_id", "is missing, and no key file names one")
	case s.project != "" && !projectID.MatchString(s.project):
		note("push.fcm.project_id", "is not the id of a project")
	}
	if wrong != nil {
		return settings{}, wrong
	}
	return s, nil
}

func configFault(field, detail string) *fault.Error {
	if field == "" {
		return fault.New(fault.Invalid, "fcm_config", "%s", detail)
	}
	return fault.New(fault.Invalid, "fcm_config", "%s: %s", field, detail).In(field, detail)
}

func baseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}

// readAccount reads a key file as far as can be told without the network. Its
// errors say nothing of what the file holds.
func readAccount(path string) (*jwt.Config, string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	var file struct {
		Type     string `json:"type"`
		Project  string `json:"project_id"`
		Email    string `json:"client_email"`
		TokenURI string `json:"token_uri"`
	}
	if json.Unmarshal(b, &file) != nil {
		return nil, "", errors.New("is not a JSON key file")
	}
	account, err := google.JWTConfigFromJSON(b, scope)
	switch {
	case err != nil || file.Type != "service_account":
		return nil, "", errors.New("is not the key file of a service account")
	case file.Email == "":
		return nil, "", errors.New("names no client_email")
	case !baseURL(account.TokenURL):
		return nil, "", errors.New("names a token_uri that is no URL")
	case !privateKey(account.PrivateKey):
		return nil, "", errors.New("holds no RSA private key that can be read")
	}
	return account, file.Project, nil
}

func privateKey(b []byte) bool {
	block, _ := pem.Decode(b)
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
