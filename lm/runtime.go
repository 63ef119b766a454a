package lm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"unsafe"

	"github.com/x448/float16"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// This file is the only one that names ONNX Runtime's binding. Another binding takes its place by another
// session and another tensor.

// session is a loaded model. Several goroutines may run it at the same time.
type session interface {
	// run computes the outputs, into the tensors that are given; an output that is nil is made. When the
	// context ends, the run ends too, with the context's error.
	run(ctx context.Context, inputs, outputs []tensor) error
	close() error
}

// tensor is an input or output in memory of this package's.
type tensor interface {
	shape() []int64
	bytes() []byte // as they stand in memory
	close() error
}

// newTensor makes a tensor of memory that is there. It must not move, so it is never on a stack.
func newTensor(t onnx.DataType, data []byte, dims ...int64) (tensor, error) {
	element, ok := elements[t]
	if !ok {
		return nil, fmt.Errorf("element type %v cannot be fed", t)
	}
	if len(data) == 0 {
		data = make([]byte, 1) // which the binding wants for a tensor without elements too
	}
	if len(dims) == 0 { // signature.Passed
		value, err := ort.NewScalar(int64(binary.LittleEndian.Uint64(data)))
		return ortTensor{value, data}, err
	}
	value, err := ort.NewCustomDataTensor(dims, data, element)
	if err != nil {
		return nil, err
	}
	return ortTensor{value, data}, nil
}

var elements = map[onnx.DataType]ort.TensorElementDataType{
	onnx.Float: ort.TensorElementDataTypeFloat, onnx.Float16: ort.TensorElementDataTypeFloat16, onnx.BFloat16: ort.TensorElementDataTypeBFloat16,
	onnx.Int64: ort.TensorElementDataTypeInt64, onnx.Int32: ort.TensorElementDataTypeInt32, onnx.Int8: ort.TensorElementDataTypeInt8, onnx.Bool: ort.TensorElementDataTypeBool,
}

type ortTensor struct {
	value ort.Value
	data  []byte
}

func (t ortTensor) shape() []int64 { return t.value.GetShape() }
func (t ortTensor) bytes() []byte  { return t.data }
func (t ortTensor) close() error   { return t.value.Destroy() }

// made is a tensor that the binding made of an output that it was not given.
func made(v ort.Value) (tensor, error) {
	switch v := v.(type) {
	case *ort.CustomDataTensor:
		return ortTensor{v, v.GetData()}, nil
	case *ort.Tensor[float32]:
		data := v.GetData()
		return ortTensor{v, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 4*len(data))}, nil
	case *ort.Tensor[int8]:
		data := v.GetData()
		return ortTensor{v, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data))}, nil
	}
	return ortTensor{v, nil}, nil // no output that is read
}

type ortSession struct{ session *ort.DynamicAdvancedSession }

// openSession loads a model for ONNX Runtime.
func openSession(path string, model *onnx.Model, inputs, outputs []string, fixedCache bool, options Options) (_ session, err error) {
	so, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, so.Destroy()) }()
	// Errors come back as values; ONNX Runtime's own log would say them twice.
	if err := so.SetLogSeverityLevel(ort.LoggingLevelFatal); err != nil {
		return nil, err
	}
	if options.Threads > 0 {
		if err := so.SetIntraOpNumThreads(options.Threads); err != nil {
			return nil, err
		}
	}
	if fixedCache {
		// Else ONNX Runtime takes as much memory for a token as for the prompt: it
		// remembers a layout by the inputs' sizes, in a sum in which the ids' and
		// the positions' cancel out, and nothing else changes from call to call.
		if err := so.SetMemPattern(false); err != nil {
			return nil, err
		}
	}
	if options.NoArena {
		if err := so.SetCpuMemArena(false); err != nil {
			return nil, err
		}
	}
	if options.NoPrepacking {
		if err := so.AddSessionConfigEntry("session.disable_prepacking", "1"); err != nil {
			return nil, err
		}
	}
	for _, p := range options.Providers {
		if err := so.AppendExecutionProvider(p.Name, p.Options); err != nil {
			return nil, fmt.Errorf("execution provider %s: %w", p.Name, err)
		}
	}
	if err := registerOps(so, path, model, options); err != nil {
		return nil, err
	}
	s, err := ort.NewDynamicAdvancedSession(path, inputs, outputs, so)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", short.Name(path), short.Error(err))
	}
	return ortSession{s}, nil
}

func (s ortSession) run(ctx context.Context, inputs, outputs []tensor) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	options, err := ort.NewRunOptions()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, options.Destroy()) }()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = options.Terminate() // where it fails, the run ends by itself
	})
	in, out := make([]ort.Value, len(inputs)), make([]ort.Value, len(outputs))
	for i, t := range inputs {
		in[i] = t.(ortTensor).value
	}
	for i, t := range outputs {
		if t != nil {
			out[i] = t.(ortTensor).value
		}
	}
	err = s.session.RunWithOptions(in, out, options)
	if !stop() {
		<-ended // the options are in use until then
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	for i, t := range outputs {
		if t == nil && !nothing(out[i]) {
			var e error
			outputs[i], e = made(out[i])
			err = errors.Join(err, e)
		}
	}
	return err
}

// nothing reports whether the binding gave no value: beside an error it may give a nil of a type.
func nothing(v ort.Value) bool {
	t, ok := v.(*ort.CustomDataTensor)
	return v == nil || ok && t == nil
}

func (s ortSession) close() error { return s.session.Destroy() }

// registerOps makes the custom ops known to a session, if the model uses them. A model's folder is never
// searched for the library: it may be somebody else's.
func registerOps(so *ort.SessionOptions, path string, model *onnx.Model, options Options) error {
	spec := 0 // that the nodes need
	for n := range model.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			spec = max(spec, int(n.Int("spec_version", 1)))
		}
	}
	if spec == 0 {
		return nil
	}
	library := customop.Options{Library: options.OpsLibrary}
	if options.Require {
		return customop.Require(so, library, spec)
	}
	err := customop.Register(so, library)
	hasFallback := slices.ContainsFunc(model.Functions, func(f *onnx.Function) bool { return f.Domain == customop.Domain })
	switch {
	case err == nil:
		return nil
	case !hasFallback:
		return fmt.Errorf("%w (the model has no fallback for its ops, so it does not run without the library)", err)
	case options.OpsLibrary != "":
		return err
	}
	options.log().Warn("the model runs on its fallback, more slowly, because the op library was not loaded", "model", path, "reason", err)
	return nil
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

// isFloat reports whether caches and logits of a type can be fed and read.
func isFloat(t onnx.DataType) bool { return t == onnx.Float || t == onnx.Float16 || t == onnx.BFloat16 }

// integers are whole numbers as they stand in memory, of the type that an input has.
func integers(t onnx.DataType, values []int64) ([]byte, error) {
	data := make([]byte, 0, len(values)*t.Size())
	for _, x := range values {
		switch t {
		case onnx.Int64:
			data = binary.NativeEndian.AppendUint64(data, uint64(x))
		case onnx.Int32:
			data = binary.NativeEndian.AppendUint32(data, uint32(int32(x)))
		case onnx.Bool:
			data = append(data, byte(x))
		default:
			return nil, fmt.Errorf("element type %v cannot be fed; only int64, int32 and bool can", t)
		}
	}
	return data, nil
}

// floats are the numbers of a tensor. Those of 32 bits stand in the tensor's memory, others
// are written into a buffer, which is used again.
func floats(t onnx.DataType, data []byte, buffer []float32) []float32 {
	switch t {
	case onnx.Float16:
		for i := 0; i+1 < len(data); i += 2 {
			buffer = append(buffer, float16.Frombits(binary.NativeEndian.Uint16(data[i:])).Float32())
		}
		return buffer
	case onnx.BFloat16:
		for i := 0; i+1 < len(data); i += 2 {
			buffer = append(buffer, math.Float32frombits(uint32(binary.NativeEndian.Uint16(data[i:]))<<16))
		}
		return buffer
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}
