package customop

// Version is the release of the project that this package and the op library
// belong to (semantic versioning, CHANGELOG.md).
const Version = "0.1.0"
