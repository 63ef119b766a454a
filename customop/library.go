package customop

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// LibraryVariable is the environment variable that names the op library.
const LibraryVariable = "ROPE_OPS_LIBRARY"

const libraryAdvice = "build it with make build in the source tree, and set " + LibraryVariable +
	" to it or put it beside the executable"

// Options says where the op library is. The zero value looks in the usual places.
type Options struct {
	Library string // path of librope_ops; nothing else is tried when it is given
}

// FindLibrary returns the absolute path of the op library: options.Library when
// it is given, else what ROPE_OPS_LIBRARY names, else the first one beside the
// executable, the one that is built into the program (package customop/bundled,
// which says where that is unpacked), one in the user's cache folder of
// rope-rewrite, or in the system's library folders. A model's folder is none of
// them: it may be somebody else's, and a library runs when it is loaded. The error says what to do, and lists the
// folders (*NotFoundError).
func FindLibrary(options Options) (string, error) { return librarySearch(options).find() }

// LibraryPlaces lists where FindLibrary looks, up to where it finds something.
func LibraryPlaces(options Options) []Place { return librarySearch(options).looked() }

func librarySearch(options Options) search {
	return search{
		library: "the op library " + fileName("rope_ops"), stem: "rope_ops",
		explicit: options.Library, variable: LibraryVariable,
		folders: places(executableFolders(), bundledFolders(), cacheFolders(), systemFolders()),
		advice:  libraryAdvice,
		unfit:   unpackBundled,
	}
}

// Register makes the ops of this project known to a session: it finds the op
// library and registers it with the session's options. Call InitRuntime first,
// Register once per SessionOptions. The error says what to do.
func Register(session *ort.SessionOptions, options Options) error {
	path, err := FindLibrary(options)
	if err != nil {
		return err
	}
	if err := session.RegisterCustomOpsLibrary(path); err != nil {
		return fmt.Errorf("the op library %s could not be registered; if it was built for another machine, %s: %w", path, libraryAdvice, err)
	}
	return nil
}

// Require is Register for a host that must not fall back. A model with the op's fallback
// also runs where no library computes its ops, more slowly and with memory for the
// square of the length, and nothing says so. Require refuses a library that does not know
// the specification that the model needs: spec is op_spec of the model's record (package
// provenance) or what rope-rewrite ops version MODEL says; 0 stands for SpecVersion.
func Require(session *ort.SessionOptions, options Options, spec int) error {
	path, err := FindLibrary(options)
	if err != nil {
		return err
	}
	info, err := InspectLibrary(path)
	if err != nil {
		return err
	}
	if spec = cmp.Or(spec, SpecVersion); info.SpecVersion < spec {
		return fmt.Errorf("the op library %s knows specifications up to %d, but the model needs %d, so its ops would run on their fallback, more slowly; %s", path, info.SpecVersion, spec, libraryAdvice)
	}
	return Register(session, Options{Library: path})
}

// LibraryInfo is what an op library says about itself.
type LibraryInfo struct {
	Path        string `json:"path"`
	Version     string `json:"version"`      // release of this project that it was built from
	SpecVersion int    `json:"spec_version"` // newest specification that it knows
}

// marker is written into the library by the generated header.
var marker = regexp.MustCompile(`rope_ops version=([0-9A-Za-z.+-]+) spec=([0-9]+)\x00`)

// InspectLibrary reads what the op library at a path says about itself, without
// loading it.
func InspectLibrary(path string) (LibraryInfo, error) {
	content, err := configfile.Read(path, configfile.Library)
	if err != nil {
		return LibraryInfo{}, err
	}
	found := marker.FindSubmatch(content)
	if found == nil {
		return LibraryInfo{}, fmt.Errorf("%s is not an op library of rope-rewrite: it has no rope_ops version in it", path)
	}
	spec, err := strconv.Atoi(string(found[2]))
	if err != nil {
		return LibraryInfo{}, fmt.Errorf("%s: %w", path, err)
	}
	return LibraryInfo{Path: path, Version: string(found[1]), SpecVersion: spec}, nil
}
