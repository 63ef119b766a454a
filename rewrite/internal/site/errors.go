package site

import "errors"

// ErrNoAttention says that a model has no rotary attention.
var ErrNoAttention = errors.New("no rotary attention in the model")
