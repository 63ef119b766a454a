//go:build !unix

package disk

import "os"

// SyncFolder does nothing where folders cannot be synced.
func SyncFolder(string) error { return nil }

// LockFolder does nothing where folders cannot be locked.
func LockFolder(string) (unlock func(), err error) { return func() {}, nil }

// CanHold says whether Hold does something. Elsewhere a file must be closed before it is renamed.
const CanHold = false

// Hold does nothing where files cannot be locked.
func Hold(*os.File) {}

// RemoveAbandoned does nothing: who uses a file cannot be told.
func RemoveAbandoned(string) {}
