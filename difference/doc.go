// Package difference has the one shape in which audit, modeldiff and validate say that something differs.
package difference
