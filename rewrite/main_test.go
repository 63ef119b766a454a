package rewrite

import (
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

func TestMain(m *testing.M) {
	ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}
