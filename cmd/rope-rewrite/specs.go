package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// parseDocuments reads input, input:NAME, separator:TOKEN or separator:TOKEN,ends
// into opts.
func parseDocuments(text string, opts *rewrite.Options) error {
	kind, err := cli.Choose("documents", text)
	if err != nil {
		return err
	}
	_, name, named := strings.Cut(text, ":")
	switch {
	case kind == "separator":
		token, ends := strings.CutSuffix(name, ",ends")
		id, err := strconv.ParseInt(token, 10, 64)
		if err != nil || id < 0 {
			return fmt.Errorf("%q: separator:TOKEN or separator:TOKEN,ends was expected, TOKEN the number of the token with which each document begins or ends", text)
		}
		opts.Separator = &rewrite.Separator{Token: id, Ends: ends}
	case named && name == "":
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
	kind, err := cli.Choose("kv", text)
	if err != nil {
		return err
	}
	_, list, found := strings.Cut(text, ":")
	if kind == "growing" {
		if found {
			return fmt.Errorf("%q: growing takes no keys; for a cache of N tokens write fixed:capacity=N", text)
		}
		return nil
	}
	given := map[string]bool{}
	if found {
		for item := range strings.SplitSeq(list, ",") {
			key, value, valued := strings.Cut(item, "=")
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
			if _, err := rope.ParseTokens(key); err == nil && !valued {
				return fmt.Errorf("%q is not key=value; write fixed:capacity=%s", key, key)
			}
			if given[key] {
				return fmt.Errorf("%s is given twice", key)
			}
			given[key] = true
			switch key {
			case "capacity":
				n, err := rope.ParseTokens(value)
				if err != nil || n < 1 || n > math.MaxInt32 {
					return fmt.Errorf("capacity=%q: a number of tokens from 1 to %d was expected, for example 8192 or 8k", value, math.MaxInt32)
				}
				opts.FixedCapacity = n
			case "input":
				if value == "" {
					return errors.New("input=: the name of the new input for the cache's lengths was expected")
				}
				opts.CacheLength = value
			default:
				return fmt.Errorf("unknown key %q%s; keys: capacity, input", key, suggest.Hint(key, []string{"capacity", "input"}))
			}
		}
	}
	if opts.FixedCapacity == 0 {
		return errors.New("fixed: how many tokens? Write fixed:capacity=8k")
	}
	return nil
}

// parseLogits reads all, last or last:input=NAME into opts.
func parseLogits(text string, opts *rewrite.Options) error {
	kind, err := cli.Choose("logits", text)
	if err != nil {
		return err
	}
	_, key, found := strings.Cut(text, ":")
	name, named := strings.CutPrefix(key, "input=")
	switch {
	case kind == "all" && found:
		return fmt.Errorf("%q: all takes no keys", text)
	case found && (!named || name == ""):
		return fmt.Errorf("%q: last or last:input=NAME was expected", text)
	case kind == "last" && named:
		opts.LogitsPlaces = name
	case kind == "last":
		opts.LogitsPlaces = rewrite.LogitsPlacesInput
	}
	return nil
}
