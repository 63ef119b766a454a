package rewrite

import "sync"

var shared struct {
	sync.Mutex
	outcomes map[string]*outcomes
}

// Again returns options with which what was measured of a model is not measured
// again by later tests that rewrite the same file, or one with the same attentions,
// with other methods.
func (o Options) Again(path string) Options {
	shared.Lock()
	defer shared.Unlock()
	if shared.outcomes == nil {
		shared.outcomes = map[string]*outcomes{}
	}
	if shared.outcomes[path] == nil {
		shared.outcomes[path] = &outcomes{}
	}
	o.known = shared.outcomes[path]
	return o
}
