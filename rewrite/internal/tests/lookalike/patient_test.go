package lookalike_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// patient is a real export to be operated on, with the operations of this folder.
type patient struct{ *kit.Patient }

func newPatient(t testing.TB, name string) *patient { return &patient{kit.NewPatient(t, name)} }

func patientAt(t testing.TB, path string) *patient { return &patient{kit.PatientAt(t, path)} }
