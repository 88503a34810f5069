package main

import (
	"net/http"
	"testing"
)

// idles counts how often it was asked to give up its idle connections.
type idles struct {
	http.RoundTripper
	asked int
}

func (i *idles) CloseIdleConnections() { i.asked++ }

func TestIdleConnectionsAreGivenUpThroughTheGateToo(t *testing.T) {
	over := &idles{}
	client := http.Client{Transport: joined{over: over}}
	client.CloseIdleConnections()
	equal(t, "asked", over.asked, 1)
}
