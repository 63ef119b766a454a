package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

type handler = func(http.ResponseWriter, *http.Request, *entry) error

// keyed lets in only who sends the key. Hashes have one length, so that the time tells nothing, not even the key's length.
func (s *server) keyed(h handler) handler {
	if s.key == "" {
		return h
	}
	want := sha256.Sum256([]byte(s.key))
	return func(w http.ResponseWriter, r *http.Request, e *entry) error {
		sent, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(sent))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !bearer {
			w.Header().Set("WWW-Authenticate", "Bearer")
			return refuse("", "the key is missing or wrong: send the header Authorization: Bearer KEY").with(http.StatusUnauthorized, "invalid_api_key")
		}
		return h(w, r, e)
	}
}
