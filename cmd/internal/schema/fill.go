package schema

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Fill returns a value with an empty list or map wherever it has none, since encoding/json writes null for
// these. What v points to is changed in place.
func Fill(v any) any {
	if v == nil {
		return nil
	}
	in := reflect.ValueOf(v)
	filled := reflect.New(in.Type()).Elem()
	filled.Set(in)
	fill(filled)
	return filled.Interface()
}

func fill(v reflect.Value) {
	if v.Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for key, value := range v.Seq2() {
			inside := reflect.New(value.Type()).Elem()
			inside.Set(value)
			fill(inside)
			v.SetMapIndex(key, inside)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			embedded := f.Anonymous && f.Type.Kind() == reflect.Struct                       // its fields can be set, also where it cannot itself
			if (v.Field(i).CanSet() || embedded) && !strings.Contains(options, "omitzero") { // an empty list is not zero
				fill(v.Field(i))
			}
		}
	}
}
