//go:build !linux

package ownfile

// Loadable: elsewhere folders of caches and of temporary files are not mounted noexec.
func Loadable(string) error { return nil }
