// Package ownfile tells whether code may be loaded from a file: whether nobody but this user and root can
// change it, and whether the system lets code run from where it is.
package ownfile
