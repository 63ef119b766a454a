#!/bin/sh
# gpu.sh runs on a GPU what no machine without one can show, the cheapest and most telling step first.
#
#     make gpu                                             builds and runs
#     sh native/cuda/bench/gpu.sh LOGS [SECONDS [STEP...]]   only runs: what make gpu built elsewhere may be carried here, no
#                                                          network is needed. With steps named, these alone.
#
# LOGS keeps what each step said (STEP.log) and which passed (STEP.passed): the same command goes on after an
# interruption. After every step LOGS.tgz has all of it, for a machine that is lent: where LOGS is not there, the next call
# begins with LOGS.tgz. No step begins after SECONDS (540 if not given), each has its own limit, and what it leaves running is
# ended. Python with torch is used where there is one, compute-sanitizer and onnxruntime-gpu likewise; a step that lacks
# them says so. Exit status 1 if a step failed or was not run. Tests print the name of a case before it runs.
#
# On compute capability 9.0 prefills of 16-bit numbers are multiplied by warpgroups (wgmma), on other cards by mma: the steps
# named mma look at those kernels on the same card.
#
# `make gpu-rehearsal` goes through the same steps with the kernels emulated on the host (--emulated).
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${BUILD:=$here/../../../build}"
emulated=
[ "${1:-}" = --emulated ] && emulated=yes && shift
logs=${1:?"name a folder for the logs"}
seconds=${2:-540}
shift $(($# < 2 ? $# : 2))
wanted=" $* "
began=$(date +%s)
missing=0
export ROPE_TEST_NAMES=1
if [ ! -d "$logs" ] && [ -f "$logs.tgz" ]; then
	mkdir -p "$logs"
	tar xzf "$logs.tgz" -C "$logs" || exit
fi
mkdir -p "$logs"

kernels=$BUILD/native/cuda/cuda_device_test
bench=$BUILD/librope_cuda_bench.so
library=$BUILD/librope_ops_cuda.so
misplaced_library=$BUILD/native/cuda/librope_ops_misplaced.so
device=cuda
provider=CUDAExecutionProvider
if [ -n "$emulated" ]; then
	kernels=$BUILD/native/cuda_test/cuda_emulation_test
	bench=$BUILD/native/cuda_test/librope_cuda_bench_emulated.so
	library=$BUILD/librope_ops.so
	misplaced_library=$BUILD/native/cuda_test/librope_ops_emulated.so
	device=cpu
	provider=CPUExecutionProvider
fi

step() { # name, limit in seconds, command...
	name=$1
	limit=$2
	shift 2
	[ "$wanted" = "  " ] || [ "${wanted#* "$name" }" != "$wanted" ] || return
	if [ -n "${GPU_STEP:-}" ]; then # this call is one step of another
		[ "$GPU_STEP" = "$name" ] || return
		"$@"
		exit
	fi
	if [ -e "$logs/$name.passed" ]; then
		printf '%-14s passed before\n' "$name"
		return
	fi
	if [ $(($(date +%s) - began)) -ge "$seconds" ]; then
		printf '%-14s not begun: %s s are over\n' "$name" "$seconds"
		missing=1
		return
	fi
	start=$(date +%s)
	GPU_STEP=$name timeout --kill-after=10 "$limit" sh "$here/gpu.sh" ${emulated:+--emulated} "$logs" >"$logs/$name.log" 2>&1
	code=$?
	took=$(($(date +%s) - start))
	case $code in
	0)
		touch "$logs/$name.passed"
		printf '%-14s passed, %s s: %s\n' "$name" "$took" "$(tail -n 1 "$logs/$name.log")"
		;;
	77)
		printf '%-14s not possible here: %s\n' "$name" "$(tail -n 1 "$logs/$name.log")"
		missing=1
		;;
	*)
		[ "$code" != 124 ] && [ "$code" != 137 ] || echo "ended after $limit s" >>"$logs/$name.log"
		printf '%-14s FAILED with %s, %s s: %s\n' "$name" "$code" "$took" "$(tail -n 1 "$logs/$name.log")"
		missing=1
		;;
	esac
	tar czf "$logs.tgz.new" -C "$logs" . && mv "$logs.tgz.new" "$logs.tgz"
}

passed() { # step, command...: only behind another step
	behind=$1
	shift
	[ -e "$logs/$behind.passed" ] || { impossible "$behind has not passed"; return; }
	"$@"
}

impossible() { # reason
	echo "$1"
	return 77
}

card() {
	[ -z "$emulated" ] || { uname -srm; return; }
	nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader || return
	python3 -c 'import torch; print("torch", torch.__version__, torch.cuda.get_device_name())'
}

sanitize() { # tool, way of multiplying
	[ -z "$emulated" ] || { impossible "kernels on the host are watched by make check-native"; return; }
	command -v compute-sanitizer >/dev/null || { impossible "compute-sanitizer is missing"; return; }
	first=
	[ "$1" != racecheck ] || first=1 # drawn calls alone: with all behaviours it takes more than 200 s
	compute-sanitizer --tool "$1" --error-exitcode 1 "$kernels" 4 100000 "${2:-any}" $first
}

# Drawn cases, by as many processes as there are processors: what takes time is the reference on the host.
cases() { # how many, products of each at most, way of multiplying
	[ -z "$emulated" ] || { "$kernels" "$1" "$2"; return; }
	many=$(nproc)
	each=$((($1 + many - 1) / many))
	running=
	i=0
	while [ $i -lt "$many" ]; do
		"$kernels" $each "$2" "$3" $((1 + i * each)) >"$logs/$name.$i.txt" 2>&1 &
		running="$running $!"
		i=$((i + 1))
	done
	failed=0
	for process in $running; do wait "$process" || failed=1; done
	grep -h FAILED "$logs/$name".*.txt
	echo "$((many * each)) drawn cases by $many processes: $([ $failed = 0 ] && echo none || echo some) failed"
	return $failed
}

profile() {
	[ -z "$emulated" ] || { impossible "nothing is timed on the host"; return; }
	with torch python3 "$here/compare.py" --profile "$bench"
}

with() { # Python module, command...
	module=$1
	shift
	python3 -c "import $module" 2>/dev/null || { impossible "python3 has no $module"; return; }
	"$@"
}

# What follows runs a program under ONNX Runtime with the provider. The CUDA libraries are those of the Python packages that
# torch brings, where there are some.
onnxruntime() { # command...
	python3 -c "import onnxruntime as o, sys; sys.exit('$provider' not in o.get_available_providers())" 2>/dev/null ||
		{ impossible "python3 has no onnxruntime with the $provider"; return; }
	LD_LIBRARY_PATH=$(python3 -c 'import glob, nvidia; print(":".join(f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib")))' 2>/dev/null):${LD_LIBRARY_PATH:-}
	ONNXRUNTIME_SHARED_LIBRARY_PATH=$(python3 -c 'import glob, onnxruntime as o, os; print(glob.glob(os.path.join(os.path.dirname(o.__file__), "capi", "libonnxruntime.so*"))[0])' 2>/dev/null)
	export LD_LIBRARY_PATH ONNXRUNTIME_SHARED_LIBRARY_PATH ROPE_OPS_LIBRARY="$library"
	"$@"
}

# The tests of the ops in Go, which make gpu compiled. What is skipped is about files, processes and threads of the CPU.
ops() { # value of ROPE_TEST_PROVIDER
	[ -z "$emulated" ] || { impossible "make test runs them on the CPU"; return; }
	[ -x "$BUILD/customop.test" ] || { impossible "$BUILD/customop.test is missing"; return; }
	export ROPE_TEST_PROVIDER="$1"
	cd "$here/../../../customop" &&
		onnxruntime "$BUILD/customop.test" -test.timeout 280s -test.v -rapid.checks 10 \
			-test.skip 'Carried|RegisterCUDA|Runtime|Telemetry|Librar|Looked|FindOrder|Given|DeviceInputsEntry|SaysWhat|Threads'
}

# Small patched models, compared with what the CPU's ops give: each op must be CUDA's kernel.
models() {
	hosts=$here/../../../scripts/hosts
	[ -x "$BUILD/rope-rewrite" ] || { impossible "$BUILD/rope-rewrite is missing"; return; }
	onnxruntime python3 "$hosts/prepare.py" "$BUILD/rope-rewrite" "$library" "$hosts/../../testdata" "$BUILD/host-cases" || return
	onnxruntime python3 "$hosts/ort.py" "$BUILD/host-cases" "$library" "$provider"
}

# Mutants of the test exports that are rewritten (proven on the CPU), run by CUDA's kernels beside the mutants themselves.
mutants() { # how many
	[ -x "$BUILD/mutants" ] || { impossible "$BUILD/mutants is missing"; return; }
	piece=$(cd "$logs" && pwd)/mutants
	cd "$here/../../.." &&
		onnxruntime "$BUILD/mutants" -provider "$([ -n "$emulated" ] || echo CUDA)" -jobs "$(nproc)" -judged "$1" -seed 5000000 \
			-commit "${COMMIT:-$(git rev-parse --short=8 HEAD)}" -piece "$piece.json" -wrong "$piece.wrong" \
			testdata/models/*/model.onnx testdata/coverage/*/model.onnx testdata/field/*/model.onnx
}

layers() {
	[ -z "$emulated" ] || { impossible "nothing is timed on the host"; return; }
	onnxruntime with torch python3 "$here/layers_gpu.py" "$library"
}

# Llama-3.2-1B's shape with random weights, as it was exported and patched.
decoder() {
	[ -z "$emulated" ] || { impossible "the model is too large for the CPU"; return; }
	[ -x "$BUILD/rope-rewrite" ] || { impossible "$BUILD/rope-rewrite is missing"; return; }
	folder=${TMPDIR:-/tmp}/rope-gpu-models
	model=$folder/llama-1b
	[ -e "$model/model.onnx" ] || python3 "$here/../../../scripts/big_models.py" "$folder" llama-1b || return
	onnxruntime "$BUILD/rope-rewrite" "$model/model.onnx" --force -o "$model/growing.onnx" --precision fast || return
	onnxruntime "$BUILD/rope-rewrite" "$model/model.onnx" --force -o "$model/fixed.onnx" --precision fast --kv fixed:capacity=4096 || return
	onnxruntime with torch python3 "$here/model_gpu.py" "$library" "$model"
}

misplaced() {
	python3 -c "import onnx, onnxruntime" 2>/dev/null || { impossible "python3 has no onnxruntime, or no onnx"; return; }
	python3 "$here/onnxruntime_gpu.py" --misplaced "$misplaced_library" "$library"
}

step card 60 card
step few-kernels 240 "$kernels" 20 200000
step first-speed 60 passed few-kernels with torch python3 "$here/compare.py" --device $device --first "$bench"
step few-mma 240 passed few-kernels "$kernels" 20 200000 mma
step kernels 500 passed few-kernels cases 150 $([ -n "$emulated" ] && echo 300000 || echo 3000000) any
step mma 500 passed few-mma cases 150 $([ -n "$emulated" ] && echo 300000 || echo 3000000) mma
step misplaced 120 passed few-kernels misplaced
step steps 300 passed few-kernels with torch python3 "$here/compare.py" --device $device --steps $([ -n "$emulated" ] && echo 20 || echo 10000) "$bench"
step speed 400 passed few-kernels with torch python3 "$here/compare.py" --device $device "$bench"
step device-inputs 400 passed few-kernels with torch python3 "$here/compare.py" --device $device --device-inputs "$bench"
step memcheck 400 passed few-kernels sanitize memcheck
step mma-memcheck 400 passed few-mma sanitize memcheck mma
step racecheck 400 passed few-kernels sanitize racecheck
step mma-racecheck 400 passed few-mma sanitize racecheck mma
step provider 300 onnxruntime python3 "$here/onnxruntime_gpu.py" --provider "$provider" "$library"
step models 300 models
step layers 200 layers
step mutants 400 mutants $([ -n "$emulated" ] && echo 20 || echo 2000)
step decoder 400 decoder
step go-ops 300 ops CUDA
step profile 200 passed few-kernels profile
step initcheck 400 passed few-kernels sanitize initcheck
step synccheck 400 passed few-kernels sanitize synccheck
exit $missing
