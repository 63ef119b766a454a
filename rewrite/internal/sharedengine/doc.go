// Package sharedengine gives all stages of one rewrite one engine, which is opened when it is first
// asked for: a worker takes longer to start than most of what it evaluates. It also bounds the memory
// that the work takes, in this process and in the worker.
package sharedengine
