package customop

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
static void* rope_open(const char* path) { return (void*)LoadLibraryA(path); }
static void* rope_symbol(void* library, const char* name) { return (void*)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>
static void* rope_open(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void* rope_symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

static const char* rope_call_text(void* f) { return ((const char* (*)(void))f)(); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// openedLibrary is the op library in this process. It stays loaded.
type openedLibrary struct {
	path   string
	handle unsafe.Pointer
}

func openLibrary(path string) (openedLibrary, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.rope_open(name)
	if handle == nil {
		return openedLibrary{}, fmt.Errorf("the op library %s cannot be opened", path)
	}
	return openedLibrary{path, handle}, nil
}

// symbol returns a function of the library, nil where it has none of that name.
func (l openedLibrary) symbol(name string) unsafe.Pointer {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.rope_symbol(l.handle, c)
}

// CPUTarget loads an op library and returns the name of the instructions that its kernels use
// on this processor, as Highway has it: "AVX3", "AVX2", "NEON".
func CPUTarget(library string) (string, error) {
	opened, err := openLibrary(library)
	if err != nil {
		return "", err
	}
	target := opened.symbol("RopeCpuTarget")
	if target == nil {
		return "", fmt.Errorf("the op library %s does not say which instructions it uses, because it is older than this package; build it again", library)
	}
	return C.GoString(C.rope_call_text(target)), nil
}
