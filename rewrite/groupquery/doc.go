// Package groupquery lifts com.microsoft GroupQueryAttention.
package groupquery
