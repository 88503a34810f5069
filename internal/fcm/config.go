package fcm

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"regexp"

	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"

	"tandem/internal/fault"
)

// scope is all that a node may do with the account.
const scope = "https://www.googleapis.com/auth/firebase.messaging"

// projectID is what stands in the path of every call; older projects carry a domain.
var projectID = regexp.MustCompile(`^[a-zA-Z0-9.:_-]+$`)

// login returns the account that logs in, nil where none is named, and the project
// that sends.
func (o Options) login() (*jwt.Config, string, error) {
	if o.CredentialsFile == "" {
		return nil, o.ProjectID, nil
	}
	account, project, err := readAccount(o.CredentialsFile)
	if err != nil {
		return nil, "", configFault("push.fcm.credentials_file", err.Error())
	}
	if project = cmp.Or(o.ProjectID, project); !projectID.MatchString(project) {
		return nil, "", configFault("push.fcm.project_id", "is missing, and the key file names no project")
	}
	return account, project, nil
}

func configFault(field, detail string) *fault.Error {
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
		Type    string `json:"type"`
		Project string `json:"project_id"`
		Email   string `json:"client_email"`
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
