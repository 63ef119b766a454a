package customop

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// RuntimeVariable is the environment variable that names the ONNX Runtime library.
const RuntimeVariable = "ONNXRUNTIME_SHARED_LIBRARY_PATH"

// MinRuntime is the oldest ONNX Runtime that the Go binding can use. (The op
// library itself runs in 1.18 and newer, from Python or C++.)
const MinRuntime = "1.29"

// TestedRuntime is the newest ONNX Runtime that this release was tested under. Newer ones are not refused.
const TestedRuntime = "1.32"

// TelemetryVariable is the environment variable by which ONNX Runtime sends
// nothing and keeps nothing to send: 1 turns its telemetry off.
const TelemetryVariable = "ORT_DISABLE_TELEMETRY"

const (
	setRuntime    = "set " + RuntimeVariable + " to the library of ONNX Runtime " + MinRuntime + " or newer"
	runtimeAdvice = "run pip install onnxruntime (or npm install -g onnxruntime-node) in the environment that is active, or " + setRuntime
)

// FindRuntime returns the absolute path of the ONNX Runtime library: explicit
// when it is not empty, else what ONNXRUNTIME_SHARED_LIBRARY_PATH names, else
// the first one beside the executable (also in its folder onnxruntime), in the
// user's cache folder of rope-rewrite, in pip's onnxruntime or npm's
// onnxruntime-node of the user's environment, or in the system's library folders. One
// that is older than MinRuntime, as its package or its name says, is passed over. The
// error says what to do, and lists the folders (*NotFoundError).
func FindRuntime(explicit string) (string, error) { return runtimeSearch(explicit).find() }

// RuntimePlaces lists where FindRuntime looks, up to where it finds something.
func RuntimePlaces(explicit string) []Place { return runtimeSearch(explicit).looked() }

func runtimeSearch(explicit string) search {
	return search{
		library: "ONNX Runtime", stem: "onnxruntime",
		explicit: explicit, variable: RuntimeVariable,
		folders: places(executableFolders("onnxruntime"), cacheFolders(), environmentFolders(), systemFolders()),
		advice:  runtimeAdvice,
		unfit:   tooOld,
	}
}

// loaded guards the binding's one environment per process.
var loaded struct {
	sync.Mutex
	path string // empty when someone else has initialised it
}

// InitRuntime finds ONNX Runtime (see FindRuntime) and initialises the Go
// binding's environment with it. Once this has worked, further calls do
// nothing, from any goroutine, unless they ask for another library, which one
// process cannot have. The error says what to do.
//
// Official builds of ONNX Runtime have telemetry, on Linux since 1.29: a device
// id and a store of events in the user's cache folder, to be sent. InitRuntime
// turns it off, for this process and those that it starts. An application that
// wants it sets ORT_DISABLE_TELEMETRY to 0 before; a value that is set stays.
func InitRuntime(explicit string) error {
	loaded.Lock()
	defer loaded.Unlock()
	if ort.IsInitialized() && (explicit == "" || loaded.path == "") {
		return nil
	}
	path, err := FindRuntime(explicit)
	if err != nil {
		return err
	}
	if ort.IsInitialized() {
		if resolved(path) == resolved(loaded.path) {
			return nil
		}
		return fmt.Errorf("ONNX Runtime %s is asked for, but this process has already loaded %s, and a process can load only one", path, loaded.path)
	}
	if err := disableTelemetry(); err != nil {
		return err
	}
	ort.SetSharedLibraryPath(path)
	if err := ort.InitializeEnvironment(); err != nil {
		return explain(path, err)
	}
	loaded.path = path
	return nil
}

// disableTelemetry does so as long as the library is not loaded, which reads the
// variable once. With cgo, os.Setenv sets the C library's environment too.
func disableTelemetry() error {
	if _, set := os.LookupEnv(TelemetryVariable); set {
		return nil
	}
	return os.Setenv(TelemetryVariable, "1")
}

// explain turns the binding's and the dynamic loader's texts into what to do.
func explain(path string, err error) error {
	if !strings.Contains(err.Error(), "ORT API base") {
		return fmt.Errorf("ONNX Runtime could not be loaded from %s; %s: %w", path, runtimeAdvice, err)
	}
	// The binding has closed the library by now: its version is what its package or its name says.
	if at := installedAt(path); at.version != "" {
		return fmt.Errorf("ONNX Runtime %s or newer is needed and %s is %s; %s, or %s", MinRuntime, path, at.version, at.upgrade, setRuntime)
	}
	return fmt.Errorf("ONNX Runtime %s or newer is needed and %s is older; %s: %w", MinRuntime, path, runtimeAdvice, err)
}

func dotted(version []int) string {
	parts := make([]string, len(version))
	for i, n := range version {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}
