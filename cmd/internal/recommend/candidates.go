package recommend

import "fmt"

// Candidates are methods that need no fine-tuning, as "AXIS SPEC", with parameters for a model that was
// trained for so many tokens and a context beyond that. Those come first that cost least where they are of
// the same quality: a scaling keeps the cache as it is.
func Candidates(trained, context int64) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if trained < 16 || context <= trained {
		return nil
	}
	times := ceil(context, trained)
	add("scaling dynamic:factor=%d", times)
	add("scaling yarn:factor=%d", times)
	if more := min(2*times, 2*context/trained); more > times {
		add("scaling yarn:factor=%d", more) // quality falls before the factor is used up
	}
	window := trained / 8
	group := ceil(context-window, trained-window) // distances up to the trained ones
	add("positions self-extend:window=%d,group=%d", window, group)
	add("positions self-extend:window=%d,group=%d", window, 2*group)
	add("positions rerope:window=%d", trained/2)
	add("positions dual-chunk:chunk_size=%d,local_size=%d", trained/4*3, window)
	if shifted := 2*trained - window; context <= shifted {
		add("positions string:window=%d", window)
	}
	return list
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
