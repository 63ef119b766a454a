package customop

/*
#include <stdlib.h>
#include <stdint.h>

typedef void* (*rope_new)(const char*, int, int, const int64_t*, size_t, char*, size_t);
typedef void* (*rope_value)(void*);
typedef void (*rope_free)(void*);

static void* rope_call_new(void* f, const char* memory, int device, int element, const int64_t* shape, size_t rank, char* error, size_t size) {
	return ((rope_new)f)(memory, device, element, shape, rank, error, size);
}
static void* rope_call_value(void* f, void* tensor) { return ((rope_value)f)(tensor); }
static void rope_call_free(void* f, void* tensor) { ((rope_free)f)(tensor); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// Memory is where a DeviceTensor lies.
type Memory struct {
	Name   string // "Cuda" (librope_ops_cuda) or "Cpu", as ONNX Runtime calls it
	Device int    // number of the GPU
}

// DeviceTensor is a tensor in a device's memory, for a cache of fixed capacity
// that stays there: bind it with IoBinding as past and, the same one, as present.
// The Go binding itself makes tensors in the CPU's memory only, which ONNX Runtime
// copies to the GPU and back in every call.
//
// It is an ort.Value. What it holds cannot be read from Go; it begins as zeros.
type DeviceTensor struct {
	ort.Value // a host's tensor of the same type, for the binding's questions about types
	shape     ort.Shape
	free      unsafe.Pointer
	tensor    unsafe.Pointer
	value     unsafe.Pointer
}

// NewDeviceTensor makes a tensor of float32, float16 or bfloat16 zeros in a
// memory. library is the op library's path, as FindCUDALibrary gives it; it must
// have been registered with some session's options before. Destroy the tensor
// when no session uses it any more.
func NewDeviceTensor(library string, memory Memory, element ort.TensorElementDataType, shape ort.Shape) (*DeviceTensor, error) {
	name := C.CString(memory.Name)
	defer C.free(unsafe.Pointer(name))
	opened, err := openLibrary(library)
	if err != nil {
		return nil, err
	}
	create, value, free := opened.symbol("RopeNewTensor"), opened.symbol("RopeTensorValue"), opened.symbol("RopeFreeTensor")
	if create == nil || value == nil || free == nil {
		return nil, fmt.Errorf("the op library %s makes no device tensors, because it is older than this package; build it again", library)
	}
	if len(shape) == 0 {
		return nil, errors.New("a device tensor needs at least one dimension")
	}
	var text [512]C.char
	tensor := C.rope_call_new(create, name, C.int(memory.Device), C.int(element), (*C.int64_t)(unsafe.Pointer(&shape[0])), C.size_t(len(shape)), &text[0], C.size_t(len(text)))
	if tensor == nil {
		return nil, fmt.Errorf("device tensor %v in %s memory: %s", shape, memory.Name, C.GoString(&text[0]))
	}
	host, err := ort.NewCustomDataTensor(ort.NewShape(1), make([]byte, sizeOf(element)), element)
	if err != nil {
		C.rope_call_free(free, tensor)
		return nil, err
	}
	return &DeviceTensor{Value: host, shape: shape.Clone(), free: free, tensor: tensor, value: C.rope_call_value(value, tensor)}, nil
}

// sizeOf is the size of one of the elements that a device tensor may have.
func sizeOf(element ort.TensorElementDataType) int {
	if element == ort.TensorElementDataTypeFloat {
		return 4
	}
	return 2
}

// GetInternals gives the binding the tensor's OrtValue. The binding's type for
// it is one pointer that it keeps to itself; a test sees to it that it stays so.
func (t *DeviceTensor) GetInternals() *ort.ValueInternalData {
	internals := new(ort.ValueInternalData)
	*(*unsafe.Pointer)(unsafe.Pointer(internals)) = t.value
	return internals
}

// GetShape returns a copy of the tensor's shape.
func (t *DeviceTensor) GetShape() ort.Shape { return t.shape.Clone() }

// ZeroContents does nothing: the contents are out of the host's reach.
func (t *DeviceTensor) ZeroContents() {}

// Destroy frees the tensor and its memory.
func (t *DeviceTensor) Destroy() error {
	if t.tensor == nil {
		return nil
	}
	C.rope_call_free(t.free, t.tensor)
	t.tensor, t.value = nil, nil
	return t.Value.Destroy()
}
