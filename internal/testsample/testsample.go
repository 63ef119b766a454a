// Package testsample lets a long list of cases keep a sample in make test.
//
// Make test runs go test -short and make test-all runs it without: then every function here
// leaves everything as it is. What -short leaves out is a skipped test that says how much.
package testsample

import (
	"cmp"
	"maps"
	"slices"
	"testing"
)

// Of returns the cases that are tried: n of them under -short, the first and the others at
// equal distances behind it.
func Of[T any](t *testing.T, cases []T, n int) []T {
	t.Helper()
	if !testing.Short() || len(cases) <= n {
		return cases
	}
	var picked []T
	for _, i := range spread(len(cases), n) {
		picked = append(picked, cases[i])
	}
	left(t, len(cases)-n, len(cases))
	return picked
}

// spread returns n places of so many, the first and the others at equal distances.
func spread(count, n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i * count / n
	}
	return places
}

// OfMap is Of for cases by name, which it takes in the order of their names.
func OfMap[K cmp.Ordered, V any](t *testing.T, cases map[K]V, n int) map[K]V {
	t.Helper()
	picked := map[K]V{}
	for _, name := range Of(t, slices.Sorted(maps.Keys(cases)), n) {
		picked[name] = cases[name]
	}
	return picked
}

// Times returns how often something drawn is tried: all times, and n under -short.
func Times(t *testing.T, all, n int) int {
	t.Helper()
	if !testing.Short() || all <= n {
		return all
	}
	left(t, all-n, all)
	return n
}

// All skips a test under -short, where a part of it would show nothing.
func All(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("left to make test-all: %s", why)
	}
}

// left makes what is left out a test that is skipped, for the list at the end of make test.
func left(t *testing.T, left, of int) {
	t.Helper()
	t.Run("left out", func(t *testing.T) { t.Skipf("left to make test-all: %d of %d cases", left, of) })
}
