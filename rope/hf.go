package rope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// ParseRopeParameters reads Hugging Face's rope_parameters (or older
// rope_scaling) dictionary as it stands in config.json. rope_type, or its alias
// type, names the method; "default" is theta if rope_theta is there, else none.
// A null counts as not given. What transformers only warns about (unknown keys,
// wrong types, values out of range) is an error that names the key.
func ParseRopeParameters(data []byte) (Spec, error) {
	byType, err := ParseLayerRopeParameters(data)
	if err != nil {
		return Spec{}, err
	}
	if s, ok := byType[""]; ok {
		return s, nil
	}
	return Spec{}, errors.New("rope_parameters: the dictionary has parameters per layer type; ParseLayerRopeParameters reads those")
}

// ParseLayerRopeParameters reads the same dictionary, or one that holds a
// dictionary for each type of layers (full_attention, sliding_attention, …).
// The result is by type; one for all layers stands under "". It may also be given
// the whole config.json: rope_parameters, or rope_scaling with rope_theta, is then
// looked for in it and in its text_config, and completed by the trained context
// that stands beside it.
func ParseLayerRopeParameters(data []byte) (map[string]Spec, error) {
	entries, err := readObject(data)
	if err == nil && isConfig(entries) {
		entries, err = dictionaryIn(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("rope_parameters: %w", err)
	}
	byType := map[string]Spec{}
	for _, n := range entries {
		if !n.isObject() {
			continue
		}
		inner, err := readObject(n.value)
		if err == nil {
			err = flat(inner)
		}
		if err == nil {
			byType[n.key], err = specOf(inner)
		}
		if err != nil {
			return nil, fmt.Errorf("rope_parameters: %q: %w", short.Name(n.key), err)
		}
	}
	if len(byType) == 0 {
		s, err := specOf(entries)
		if err != nil {
			return nil, fmt.Errorf("rope_parameters: %w", err)
		}
		return map[string]Spec{"": s}, nil
	}
	for _, n := range entries {
		if !n.isObject() && !n.isNull() {
			return nil, fmt.Errorf("rope_parameters: key %q is beside the parameters per layer type; put it into the parameters of each type", short.Name(n.key))
		}
	}
	return byType, nil
}

// specOf reads the entries of one dictionary.
func specOf(entries []entry) (Spec, error) {
	if !slices.ContainsFunc(entries, func(n entry) bool { return !n.isNull() }) {
		return Spec{}, errors.New("the dictionary is empty; give rope_type for a method, or rope_theta alone for another base")
	}
	ropeType, err := ropeType(entries)
	if err != nil {
		return Spec{}, err
	}
	m, err := methodOfRopeType(ropeType, entries)
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Axis: ScalingAxis, Name: m.Name}
	for _, entry := range entries {
		if entry.key == "rope_type" || entry.key == "type" || (entry.key == paramTheta.Name && entry.isNull()) {
			continue
		}
		p, err := m.param(entry.key)
		if err != nil && !named(entries) {
			return Spec{}, fmt.Errorf("key %q needs a method; name one with rope_type (%s)", short.Name(entry.key), strings.Join(ropeTypes(), ", "))
		}
		if err != nil {
			return Spec{}, err
		}
		if entry.isNull() && p.Kind != Switch { // transformers takes a null switch for false
			continue
		}
		v, err := jsonValue(p.Kind, entry.value)
		if err != nil {
			return Spec{}, fmt.Errorf("%s: %s=%s %w; it takes %v", m.title(), entry.key, entry.value, err, p.Kind)
		}
		if err := s.set(m, p, v); err != nil {
			return Spec{}, err
		}
	}
	return s, nil
}

// flat refuses a dictionary within one of a layer type.
func flat(entries []entry) error {
	for _, n := range entries {
		if n.isObject() {
			return fmt.Errorf("key %q holds an object; expected a number, list or text", short.Name(n.key))
		}
	}
	return nil
}

// entry is one key of the dictionary with its undecoded value.
type entry struct {
	key   string
	value json.RawMessage
}

func (n entry) isNull() bool   { return string(n.value) == "null" }
func (n entry) isObject() bool { return bytes.HasPrefix(n.value, []byte("{")) }

// readObject reads one JSON object, in order; keys given twice are errors.
func readObject(data []byte) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	start, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if start != json.Delim('{') {
		return nil, errors.New("not a JSON object {…}")
	}
	var entries []entry
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		key := token.(string) // the decoder refuses any other key
		if slices.ContainsFunc(entries, func(n entry) bool { return n.key == key }) {
			return nil, fmt.Errorf("key %q is given twice", short.Name(key))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("value of %q is not JSON: %w", short.Name(key), err)
		}
		entries = append(entries, entry{key, value})
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the object")
	}
	return entries, nil
}

// ropeType reads rope_type or its alias; "default" if both are absent.
func ropeType(entries []entry) (string, error) {
	found, foundKey := "", ""
	for _, n := range entries {
		if (n.key != "rope_type" && n.key != "type") || n.isNull() {
			continue
		}
		var name string
		if err := json.Unmarshal(n.value, &name); err != nil {
			return "", fmt.Errorf("%s=%s is not a text", n.key, n.value)
		}
		if foundKey != "" && name != found {
			return "", fmt.Errorf("%s=%q and %s=%q disagree", foundKey, short.Name(found), n.key, short.Name(name))
		}
		found, foundKey = name, n.key
	}
	if foundKey == "" {
		return "default", nil
	}
	return found, nil
}

// methodOfRopeType finds our method for Hugging Face's name, or for "su", which
// Phi-3's first configurations call longrope.
func methodOfRopeType(ropeType string, entries []entry) (Method, error) {
	if ropeType == "su" {
		return Lookup(ScalingAxis, longRoPE.Name)
	}
	if ropeType == "default" {
		if _, ok := find(entries, paramTheta.Name); ok {
			return Lookup(ScalingAxis, theta.Name)
		}
		return Lookup(ScalingAxis, none.Name)
	}
	for m := range Methods() {
		if m.HF && m.Name == ropeType {
			return m, nil
		}
	}
	return Method{}, fmt.Errorf("unknown rope_type %q%s; known: %s", short.Name(ropeType), suggest.Hint(ropeType, ropeTypes()), strings.Join(ropeTypes(), ", "))
}

// ropeTypes lists the values of rope_type.
func ropeTypes() []string {
	names := []string{"default"}
	for m := range Methods() {
		if m.HF {
			names = append(names, m.Name)
		}
	}
	return names
}

// named says whether the dictionary names a method.
func named(entries []entry) bool {
	_, long := find(entries, "rope_type")
	_, short := find(entries, "type")
	return long || short
}

// jsonValue reads a JSON value of the given kind. JSON's spelling of numbers
// and switches is ParseSpec's.
func jsonValue(kind Kind, raw json.RawMessage) (Value, error) {
	if kind == Word {
		var word string
		if err := json.Unmarshal(raw, &word); err != nil {
			return Value{}, errors.New("is not a text")
		}
		return Text(word), nil
	}
	if kind != Reals {
		return parseValue(kind, string(raw))
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 {
		return Value{}, errors.New("is not a list of numbers")
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	return parseValue(kind, "["+strings.Join(texts, ";")+"]")
}
