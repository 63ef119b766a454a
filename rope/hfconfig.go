package rope

import (
	"errors"
	"fmt"
	"slices"
)

// Where the dictionary stands in a config.json: rope_parameters since
// transformers 5, rope_scaling with rope_theta beside it before, either of them
// inside text_config in models that read more than text.

// isConfig says whether an object is a whole config.json: it has a key that the
// dictionary never has.
func isConfig(entries []entry) bool {
	return slices.ContainsFunc(entries, func(n entry) bool {
		return slices.Contains([]string{"rope_parameters", "rope_scaling", "text_config", "model_type", "architectures", "max_position_embeddings"}, n.key)
	})
}

// find returns the value of a key that is there and not null.
func find(entries []entry, key string) (entry, bool) {
	i := slices.IndexFunc(entries, func(n entry) bool { return n.key == key && !n.isNull() })
	if i < 0 {
		return entry{}, false
	}
	return entries[i], true
}

// dictionaryIn returns the dictionary of a config.json, completed as transformers
// does it by what stands beside it: rope_theta, and the trained context where the
// method takes it.
func dictionaryIn(config []entry) ([]entry, error) {
	dictionary, found := find(config, "rope_parameters")
	if !found {
		dictionary, found = find(config, "rope_scaling")
	}
	base, hasBase := find(config, paramTheta.Name)
	if inner, nested := find(config, "text_config"); !found && !hasBase && nested {
		entries, err := readObject(inner.value)
		if err != nil {
			return nil, fmt.Errorf("text_config: %w", err)
		}
		deeper := func(n entry) bool { return n.key == inner.key } // no exporter writes one inside another
		return dictionaryIn(slices.DeleteFunc(entries, deeper))
	}
	if local, two := find(config, "rope_local_base_freq"); two {
		return nil, fmt.Errorf("the configuration has a separate base for sliding-window layers, rope_local_base_freq=%s; give each kind of layer its own with --scaling SPEC@LAYERS", local.value)
	}
	var entries []entry
	if found {
		var err error
		if entries, err = readObject(dictionary.value); err != nil {
			return nil, fmt.Errorf("%s: %w", dictionary.key, err)
		}
	}
	if slices.ContainsFunc(entries, entry.isObject) {
		return entries, nil // by type of layers: each is complete
	}
	if _, own := find(entries, paramTheta.Name); hasBase && !own {
		entries = append(entries, base)
	}
	if len(entries) == 0 {
		return nil, errors.New("the configuration has neither rope_parameters nor rope_scaling nor rope_theta; give the method with --scaling")
	}
	name, err := ropeType(entries)
	if err != nil {
		return nil, err
	}
	m, err := methodOfRopeType(name, entries)
	if err != nil {
		return nil, err
	}
	return completed(entries, config, m)
}

// completed adds the numbers of tokens that stand beside the dictionary.
func completed(entries, config []entry, m Method) ([]entry, error) {
	length, hasLength := find(config, "max_position_embeddings")
	if m.Name == dynamic.Name && hasLength { // of which transformers reads no other trained length
		entries = slices.DeleteFunc(entries, func(n entry) bool { return n.key == paramOriginal.Name })
		return append(entries, entry{paramOriginal.Name, length.value}), nil
	}
	if _, own := find(entries, paramOriginal.Name); own || !slices.Contains(m.keys(), paramOriginal.Name) {
		return entries, nil
	}
	original, hasOriginal := find(config, paramOriginal.Name) // where Phi-3 has it
	switch {
	case !hasOriginal && hasLength:
		return append(entries, entry{paramOriginal.Name, length.value}), nil
	case !hasOriginal:
		return entries, nil
	}
	entries = append(entries, entry{paramOriginal.Name, original.value})
	if _, own := find(entries, paramFactor.Name); own || !hasLength || m.Name != longRoPE.Name {
		return entries, nil
	}
	from, errFrom := parseValue(Whole, string(original.value))
	to, errTo := parseValue(Whole, string(length.value))
	if err := errors.Join(errFrom, errTo); err != nil {
		return nil, fmt.Errorf("%s=%s and max_position_embeddings=%s: %w", original.key, original.value, length.value, err)
	}
	return append(entries, entry{paramFactor.Name, []byte(formatNumber(to.number / from.number))}), nil
}
