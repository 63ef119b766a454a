//go:build !unix

package disk

// SyncFolder does nothing where folders cannot be synced.
func SyncFolder(string) error { return nil }

// LockFolder does nothing where folders cannot be locked.
func LockFolder(string) (unlock func(), err error) { return func() {}, nil }
