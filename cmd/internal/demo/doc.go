// Package demo has a small model with all that stands beside one, so that every line of the documentation can be
// typed where nothing but the command is: a Llama of two layers and random weights, as Optimum exports it.
package demo
