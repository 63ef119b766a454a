//go:build bundled

package main

import _ "github.com/rope-rewrite/rope-rewrite/customop/bundled" // releases contain the op library
