// Package testsample lets a long list of cases keep a sample in make test and make test-all.
//
// Make test-every sets the variable Every, and every case of every list is tried. Make test runs go test -short, and
// make test-all runs it without: the lists have the same samples, and tests that are left out of make test are run.
// What is left out is a skipped test that says how much.
package testsample

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"testing"
)

// Every is the environment variable that asks for all cases, if it is not empty.
const Every = "ROPE_TEST_EVERY"

// size is how many of so many cases are tried where a sample has n.
func size(count, n int) int {
	if EveryCase() {
		return count
	}
	return min(n, count)
}

// EveryCase reports whether every case is asked for.
func EveryCase() bool { return os.Getenv(Every) != "" && !testing.Short() }

// Of returns the cases that are tried: n of them, the first and the others at equal distances behind it, unless
// every case is asked for.
func Of[T any](t *testing.T, cases []T, n int) []T {
	t.Helper()
	n = size(len(cases), n)
	if n == len(cases) {
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

// Times returns how often something drawn is tried: n times, and all times where every case is asked for.
func Times(t *testing.T, all, n int) int {
	t.Helper()
	n = size(all, n)
	if n < all {
		left(t, all-n, all)
	}
	return n
}

// All skips a test under -short, where a part of it would show nothing.
func All(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("left to make test-all: %s", why)
	}
}

// Long skips a test but where every case is asked for: it takes minutes, or gigabytes.
func Long(t testing.TB, why string) {
	t.Helper()
	if !EveryCase() {
		t.Skipf("left to make test-every: %s", why)
	}
}

// left makes what is left out a test that is skipped, for the list at the end of the command.
func left(t *testing.T, left, of int) {
	t.Helper()
	t.Run("left out", func(t *testing.T) { t.Skipf("left to make test-every: %d of %d cases", left, of) })
}
