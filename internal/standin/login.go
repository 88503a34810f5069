package standin

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// account is the part of a service account's key file that its token endpoint needs.
type account struct {
	Type     string `json:"type"`
	Project  string `json:"project_id"`
	KeyID    string `json:"private_key_id"`
	Key      string `json:"private_key"`
	Email    string `json:"client_email"`
	TokenURI string `json:"token_uri"`
}

// ServiceAccount makes the key file of an account that nobody but a stand-in
// knows, for its project "standin". TokenURI is where it asks for tokens: an FCM
// stand-in's address and "/token".
func ServiceAccount(tokenURI string) ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(account{
		Type:     "service_account",
		Project:  "standin",
		KeyID:    "1",
		Key:      string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		Email:    "node@standin.test",
		TokenURI: tokenURI,
	})
}

// login is the token endpoint, and what it has issued.
type login struct {
	faults faults

	mu     sync.Mutex
	who    account
	key    *rsa.PublicKey // nil: anyone may send
	tokens map[string]time.Time
	grants int
}

// Trust makes FCM ask for a login from now on, and grant it to this account.
func (f *FCM) Trust(keyFile []byte) error {
	var who account
	if err := json.Unmarshal(keyFile, &who); err != nil {
		return err
	}
	block, _ := pem.Decode([]byte(who.Key))
	if block == nil {
		return errors.New("the key file holds no key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return errors.New("the key is not an RSA key")
	}
	f.login.mu.Lock()
	defer f.login.mu.Unlock()
	f.login.who, f.login.key, f.login.tokens = who, &private.PublicKey, map[string]time.Time{}
	return nil
}

// FailLogin makes the next requests for a token end in these faults, one each.
func (f *FCM) FailLogin(faults ...Fault) { f.login.faults.queue("", faults) }

// Revoke makes every token issued so far worthless before its time.
func (f *FCM) Revoke() {
	f.login.mu.Lock()
	defer f.login.mu.Unlock()
	clear(f.login.tokens)
}

// Grants counts the tokens issued.
func (f *FCM) Grants() int {
	f.login.mu.Lock()
	defer f.login.mu.Unlock()
	return f.login.grants
}

func (l *login) holds(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.key == nil || time.Now().Before(l.tokens[token])
}

// grant serves the JWT bearer grant of RFC 7523.
func (l *login) grant(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	if fault, failing := l.faults.next(""); failing {
		fault.answer(w, r)
		return
	}
	if err := l.check(r.PostForm.Get("grant_type"), r.PostForm.Get("assertion")); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": err.Error()})
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants++
	token := fmt.Sprintf("standin-access-%d", l.grants)
	l.tokens[token] = time.Now().Add(time.Hour)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
}

func (l *login) check(grant, assertion string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := strings.Split(assertion, ".")
	if l.key == nil || grant != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
		return errors.New("not a grant this endpoint knows")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(l.key, crypto.SHA256, digest[:], signature); err != nil {
		return err
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
		Expires  int64  `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	scopes := strings.Fields(claims.Scope)
	switch {
	case err != nil:
		return err
	case claims.Issuer != l.who.Email, claims.Audience != l.who.TokenURI:
		return errors.New("made by or for another")
	case !slices.Contains(scopes, "https://www.googleapis.com/auth/firebase.messaging") &&
		!slices.Contains(scopes, "https://www.googleapis.com/auth/cloud-platform"):
		return errors.New("the scope does not cover messaging")
	case time.Now().Unix() >= claims.Expires:
		return errors.New("expired")
	}
	return nil
}
