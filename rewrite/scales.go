package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
)

// scalesFile is a file of scales: {"layers": [{"layer": 0, "key": 0.05, "value": 0.02}, …]}.
type scalesFile struct {
	Layers []layerScales `json:"layers"`
}

type layerScales struct {
	Layer *int      `json:"layer"` // as reports count layers
	Key   scaleList `json:"key"`   // a number, or a list with one for each channel of each kv head
	Value scaleList `json:"value"`
}

// scaleList is one number or a list of them.
type scaleList []float64

func (l *scaleList) UnmarshalJSON(data []byte) error {
	list := []float64{0}
	if json.Unmarshal(data, &list[0]) != nil || bytes.Equal(data, []byte("null")) {
		if list = nil; json.Unmarshal(data, &list) != nil || len(list) == 0 {
			return errors.New("a scale is a number, or a list with a number for each channel of each kv head")
		}
	}
	*l = list
	return nil
}

func (l scaleList) MarshalJSON() ([]byte, error) {
	if list := narrow(l); len(list) > 1 {
		return json.Marshal(list)
	}
	return json.Marshal(float32(l[0]))
}

// checked are the scales of a layer's key or value, if caches can have them.
func (l scaleList) checked(layer int, of string) ([]float32, error) {
	if l == nil {
		return nil, fmt.Errorf("layer %d has no scale for its %s", layer, of)
	}
	list := narrow(l)
	for i, x := range list {
		if !(x > 0) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("layer %d has the scale %v for its %s: expected a number above 0 that float32 can hold", layer, l[i], of)
		}
	}
	return list, nil
}

func narrow(list []float64) (out []float32) {
	for _, x := range list {
		out = append(out, float32(x))
	}
	return out
}

func wide(list []float32) (out []float64) {
	for _, x := range list {
		out = append(out, float64(x))
	}
	return out
}

// ParseCacheScales reads the content of a file of scales, for Cache.Scales.
func ParseCacheScales(data []byte) (map[int]CacheScales, error) {
	var f scalesFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("it is no file of scales: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on behind the scales; expected one JSON object")
	}
	if len(f.Layers) == 0 {
		return nil, errors.New(`it has no scales; expected {"layers": [{"layer": 0, "key": 0.05, "value": 0.02}, …]}`)
	}
	scales := map[int]CacheScales{}
	for i, l := range f.Layers {
		if l.Layer == nil {
			return nil, fmt.Errorf("entry %d has no layer; expected its number, counted from 0", i+1)
		}
		if *l.Layer < 0 {
			return nil, fmt.Errorf("entry %d has the layer %d; layers are counted from 0", i+1, *l.Layer)
		}
		if _, twice := scales[*l.Layer]; twice {
			return nil, fmt.Errorf("layer %d is given twice", *l.Layer)
		}
		key, err := l.Key.checked(*l.Layer, "key")
		if err != nil {
			return nil, err
		}
		value, err := l.Value.checked(*l.Layer, "value")
		if err != nil {
			return nil, err
		}
		scales[*l.Layer] = CacheScales{key, value}
	}
	return scales, nil
}

// WriteCacheScales writes a file of scales, a layer in each line.
func WriteCacheScales(w io.Writer, scales map[int]CacheScales) error {
	var out bytes.Buffer
	out.WriteString("{\"layers\": [")
	for i, layer := range slices.Sorted(maps.Keys(scales)) {
		s := scales[layer]
		line, err := json.Marshal(layerScales{&layer, wide(s.Key), wide(s.Value)})
		if err != nil {
			return fmt.Errorf("layer %d: %w", layer, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n  %s", line)
	}
	out.WriteString("\n]}\n")
	_, err := w.Write(out.Bytes())
	return err
}

// ScaledCache is the cache of a layer that was written with fixed scales.
type ScaledCache struct {
	Key, Value string // the outputs of the graph
	Scales     CacheScales
}

// ReadScaledCaches returns the caches of int8 with fixed scales that Contrib wrote into a model, in the order
// of its layers. Other models have none.
func ReadScaledCaches(m *onnx.Model) (list []ScaledCache) {
	for _, n := range m.Graph.Nodes {
		if s := contrib.ScalesOf(m.Graph, n); s != nil && len(n.Outputs) > 2 {
			list = append(list, ScaledCache{n.Outputs[1], n.Outputs[2], CacheScales(*s)})
		}
	}
	return list
}
