package standin_test

import (
	"context"
	"net/http"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"tandem/internal/standin"
)

const messaging = "https://www.googleapis.com/auth/firebase.messaging"

// logIn makes the real JWT grant with a key file.
func logIn(t *testing.T, far *standin.FCM, keyFile []byte, scope string) (string, error) {
	t.Helper()
	account, err := google.JWTConfigFromJSON(keyFile, scope)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: standin.Transport(far)}
	token, err := account.TokenSource(context.WithValue(t.Context(), oauth2.HTTPClient, client)).Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

func TestLoginIsForTheTrustedKeyAndScope(t *testing.T) {
	var files [2][]byte
	for i := range files {
		b, err := standin.ServiceAccount("http://fcm.test/token")
		if err != nil {
			t.Fatal(err)
		}
		files[i] = b
	}
	far := standin.NewFCM("standin")
	if _, err := logIn(t, far, files[0], messaging); err == nil {
		t.Error("nobody is trusted yet")
	}
	if err := far.Trust(files[0]); err != nil {
		t.Fatal(err)
	}
	if status, _ := sendRaw(t, far, sendPath, message("t", "f")); status != http.StatusUnauthorized {
		t.Errorf("without a login: %d", status)
	}
	if _, err := logIn(t, far, files[1], messaging); err == nil {
		t.Error("another key of the same name was let in")
	}
	if _, err := logIn(t, far, files[0], "https://www.googleapis.com/auth/devstorage.read_only"); err == nil {
		t.Error("a scope that does not cover messaging was let in")
	}
	first, err := logIn(t, far, files[0], messaging)
	if err != nil || first == "" || far.Grants() != 1 {
		t.Errorf("%v, %d grants", err, far.Grants())
	}
	if err := far.Trust([]byte(`{"private_key": "none"}`)); err == nil {
		t.Error("a file without a key was trusted")
	}
}
