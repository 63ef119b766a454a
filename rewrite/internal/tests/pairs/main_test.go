package pairs

import (
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}
