// Package offheap gives large pieces of memory that Go's collector does not count: it lets as much garbage pile
// up as there is live memory, so a cache of a gigabyte on the heap would let another gigabyte of garbage stand.
package offheap
