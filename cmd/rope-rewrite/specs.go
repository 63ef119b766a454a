package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// parseDocuments reads input, input:NAME, separator:TOKEN or separator:TOKEN,ends
// into opts.
func parseDocuments(text string, opts *rewrite.Options) error {
	kind, name, named := strings.Cut(text, ":")
	switch {
	case kind == "separator":
		token, ends := strings.CutSuffix(name, ",ends")
		id, err := strconv.ParseInt(token, 10, 64)
		if err != nil || id < 0 {
			return fmt.Errorf("%q: separator:TOKEN or separator:TOKEN,ends was expected, TOKEN the number of the token with which each document begins or ends", text)
		}
		opts.Separator = &rewrite.Separator{Token: id, Ends: ends}
	case kind != "input" || named && name == "":
		return fmt.Errorf("%q: input, input:NAME or separator:TOKEN was expected", text)
	case named:
		opts.Documents = name
	default:
		opts.Documents = rewrite.DocumentsInput
	}
	return nil
}

// parseKV reads growing, or fixed:capacity=N and its options, into opts.
func parseKV(text string, opts *rewrite.Options) error {
	kind, list, found := strings.Cut(text, ":")
	if kind == "growing" && !found {
		return nil
	}
	if kind != "fixed" {
		return fmt.Errorf("%q: growing or fixed:capacity=N was expected", text)
	}
	given := map[string]bool{}
	if found {
		for item := range strings.SplitSeq(list, ",") {
			key, value, _ := strings.Cut(item, "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			if given[key] {
				return fmt.Errorf("%s is given twice", key)
			}
			given[key] = true
			switch key {
			case "capacity":
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil || n < 1 || n > math.MaxInt32 {
					return fmt.Errorf("capacity=%q: a number of tokens from 1 to %d was expected", value, math.MaxInt32)
				}
				opts.FixedCapacity = n
			case "input":
				if value == "" {
					return errors.New("input=: the name of the new input for the cache's lengths was expected")
				}
				opts.CacheLength = value
			default:
				return fmt.Errorf("unknown key %q; keys: capacity, input", key)
			}
		}
	}
	if opts.FixedCapacity == 0 {
		return errors.New("fixed: how many tokens? Write fixed:capacity=N")
	}
	return nil
}

// oneOf says which values were expected.
func oneOf[T ~string](known []T) string {
	list := make([]string, len(known))
	for i, v := range known {
		list[i] = string(v)
	}
	return strings.Join(list, " or ")
}
