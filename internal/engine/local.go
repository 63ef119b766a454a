package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Local evaluates in this process: fastest, and as mortal as ONNX Runtime is.
type Local struct{ config Config }

// NewLocal initialises ONNX Runtime in this process.
func NewLocal(c Config) (*Local, error) {
	if err := customop.InitRuntime(c.Runtime); err != nil {
		return nil, err
	}
	if c.Provider != "" {
		if err := canProvide(c.Provider); err != nil {
			return nil, err
		}
	}
	return &Local{config: c}, nil
}

// Version returns the version of ONNX Runtime that evaluates, as that says it.
func (e *Local) Version() string { return ort.GetVersion() }

// Close does nothing: the runtime stays loaded until the process ends.
func (e *Local) Close() error { return nil }

// Load creates a session.
func (e *Local) Load(_ context.Context, m Model) (Session, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer options.Destroy()
	if err := e.configure(options, m); err != nil {
		return nil, err
	}
	s := &localSession{model: m}
	if m.Bytes != nil {
		s.session, err = ort.NewDynamicAdvancedSessionWithONNXData(m.Bytes, m.Inputs, m.Outputs, options)
	} else {
		s.session, err = ort.NewDynamicAdvancedSession(m.Path, m.Inputs, m.Outputs, options)
	}
	if err != nil {
		return nil, fmt.Errorf("ONNX Runtime refused the model: %w", short.Error(err))
	}
	return s, nil
}

func (e *Local) configure(options *ort.SessionOptions, m Model) error {
	level := ort.GraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll)
	if m.Optimize {
		level = ort.GraphOptimizationLevelEnableAll
	}
	if m.Save != "" {
		if m.Optimize {
			level = ort.GraphOptimizationLevelEnableBasic
		}
		if err := errors.Join(options.SetOptimizedModelFilePath(m.Save),
			options.AddSessionConfigEntry("session.optimized_model_external_initializers_file_name", filepath.Base(m.Save)+".data")); err != nil {
			return err
		}
	}
	if err := options.SetGraphOptimizationLevel(level); err != nil {
		return err
	}
	if e.config.Threads > 0 {
		if err := options.SetIntraOpNumThreads(e.config.Threads); err != nil {
			return err
		}
	}
	// Threads that wait busily for the next call would take a core from what comes between calls.
	if err := options.AddSessionConfigEntry("session.force_spinning_stop", "1"); err != nil {
		return err
	}
	// What a piece needed is given back at once, for the next may be large; the
	// arena would keep the largest of everything until the session ends. Where
	// thousands of nodes make something small each, it saves as many calls.
	if !m.Optimize && !m.Large {
		if err := errors.Join(options.SetCpuMemArena(false), options.SetMemPattern(false)); err != nil {
			return err
		}
	}
	// Which nodes can share a buffer takes ONNX Runtime time with the square of
	// their number, ten times all else for 8,000. Its parallel execution does
	// without; it is that from two threads on.
	if m.Large {
		if err := errors.Join(options.SetExecutionMode(ort.ExecutionModeParallel), options.SetInterOpNumThreads(2),
			options.AddSessionConfigEntry("session.inter_op.allow_spinning", "0")); err != nil {
			return err
		}
	}
	// Errors come back as values; ONNX Runtime's own log would say them twice.
	if err := options.SetLogSeverityLevel(ort.LoggingLevelFatal); err != nil {
		return err
	}
	if m.Folder != "" {
		if err := options.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", m.Folder); err != nil {
			return err
		}
	}
	if e.config.Provider != "" {
		if err := provide(options, e.config.Provider); err != nil {
			return err
		}
	}
	if m.Library {
		return customop.Register(options, customop.Options{Library: e.config.Library})
	}
	return nil
}

type localSession struct {
	model   Model
	session *ort.DynamicAdvancedSession
}

func (s *localSession) Close() error { return s.session.Destroy() }

func (s *localSession) Run(ctx context.Context, feeds map[string]Tensor) (map[string]Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.model.Inputs) == 0 || len(s.model.Outputs) == 0 {
		return nil, errors.New("a model without inputs or without outputs cannot be run")
	}
	inputs := make([]ort.Value, len(s.model.Inputs))
	defer destroy(inputs)
	for i, name := range s.model.Inputs {
		feed, ok := feeds[name]
		if !ok {
			return nil, fmt.Errorf("input %q is not fed", short.Name(name))
		}
		v, err := toValue(feed)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", short.Name(name), err)
		}
		inputs[i] = v
	}
	outputs := make([]ort.Value, len(s.model.Outputs))
	defer destroy(outputs)
	if err := s.session.Run(inputs, outputs); err != nil {
		return nil, short.Error(err)
	}
	runtime.KeepAlive(feeds)
	results := make(map[string]Tensor, len(outputs))
	for i, v := range outputs {
		t, err := fromValue(v)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", short.Name(s.model.Outputs[i]), err)
		}
		results[s.model.Outputs[i]] = t
	}
	return results, nil
}

func destroy(values []ort.Value) {
	for _, v := range values {
		// The binding leaves a nil pointer where it could not take an output.
		if v != nil && !reflect.ValueOf(v).IsNil() {
			v.Destroy()
		}
	}
}

func toValue(t Tensor) (ort.Value, error) {
	data := t.Data
	if int64(len(data)) != t.Len()*int64(t.Type.Size()) {
		return nil, fmt.Errorf("%d bytes do not fill %v%v", len(data), t.Type, t.Dims)
	}
	if len(t.Dims) == 0 {
		return scalar(t)
	}
	if len(data) == 0 {
		data = make([]byte, 1) // the binding asks for one byte even where there is no element
	}
	return ort.NewCustomDataTensor(ort.Shape(t.Dims), data, ort.TensorElementDataType(t.Type))
}

// scalar is a value without dimensions, which the binding makes of a number alone.
func scalar(t Tensor) (ort.Value, error) {
	switch t.Type {
	case onnx.Float:
		return ort.NewScalar(elementsOf[float32](t.Data)[0])
	case onnx.Int64:
		return ort.NewScalar(elementsOf[int64](t.Data)[0])
	case onnx.Int32:
		return ort.NewScalar(elementsOf[int32](t.Data)[0])
	case onnx.Bool:
		return ort.NewScalar(t.Data[0] != 0)
	}
	return nil, fmt.Errorf("a value of type %v without dimensions cannot be fed", t.Type)
}

func fromValue(v ort.Value) (Tensor, error) {
	dims := []int64(v.GetShape())
	switch v := v.(type) {
	case *ort.Tensor[float32]:
		return tensor(onnx.Float, dims, v.GetData()), nil
	case *ort.Tensor[float64]:
		return tensor(onnx.Double, dims, v.GetData()), nil
	case *ort.Tensor[int64]:
		return tensor(onnx.Int64, dims, v.GetData()), nil
	case *ort.Tensor[int32]:
		return tensor(onnx.Int32, dims, v.GetData()), nil
	case *ort.Tensor[int8]:
		return tensor(onnx.Int8, dims, v.GetData()), nil
	case *ort.Tensor[bool]:
		return tensor(onnx.Bool, dims, v.GetData()), nil
	}
	return Tensor{}, fmt.Errorf("outputs of type %T are not supported", v)
}

// tensor makes a tensor of data, which the binding copied out of ONNX Runtime's memory
// and does not use any more.
func tensor[E float32 | float64 | int64 | int32 | int8 | bool](t onnx.DataType, dims []int64, data []E) Tensor {
	return Tensor{Type: t, Dims: dims, Data: bytesOf(data)[:Elements(dims)*int64(t.Size())]}
}
