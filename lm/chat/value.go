package chat

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// value is what a caller's value is in a template: what Python reads of its JSON.
func value(v any) (any, error) {
	data, err := write(v)
	if err != nil {
		return nil, err
	}
	return jinja.FromJSON(data)
}

// write gives the JSON of a caller's value. Texts that are not UTF-8 are refused:
// encoding/json would change them.
func write(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	if !validTexts(reflect.ValueOf(v)) {
		return nil, errors.New("a text in it is not UTF-8")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// validTexts says whether all texts in a value are UTF-8. What writes itself is not
// looked into.
func validTexts(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return true
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Interface, reflect.Pointer:
		return validTexts(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !validTexts(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if !validTexts(entry.Key()) || !validTexts(entry.Value()) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !validTexts(v.Field(i)) {
				return false
			}
		}
	}
	return true
}
