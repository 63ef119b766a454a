package main

// Go's runtime ends a process that may reserve too little with pages of stacks and the exit code of wrong usage, partly
// before any Go code runs. So C asks first. Measured with Go 1.26 and ONNX Runtime 1.31: a small model needs 1.9 GiB of
// addresses, most of which is never used.

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((constructor)) static void check_address_space(void) {
	const rlim_t least = 2048, mega = 1 << 20;
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / mega < least) {
		dprintf(2, "rope-rewrite: this process may use %llu MB of addresses, and needs at least %llu MB; raise ulimit -v, or bound memory with --max-memory\n",
			(unsigned long long)(limit.rlim_cur / mega), (unsigned long long)least);
		_exit(1);
	}
}
*/
import "C"
