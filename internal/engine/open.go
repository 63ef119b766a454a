package engine

// Open returns an engine: a worker where a command is given, a program that calls
// ServeIfWorker, else one in this process, which a hostile graph may end.
func Open(c Config, worker []string) (Engine, error) {
	if len(worker) == 0 {
		return NewLocal(c)
	}
	return NewWorker(c, worker[0], worker[1:]...)
}
