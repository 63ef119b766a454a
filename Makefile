# `make demo` shows what the tool does, `make test` tests it, `make test-all` tests more of
# it, and `make test-every` all; `make help` lists the rest. Everything that is fetched or built goes into build/.

BUILD := $(CURDIR)/build
JOBS  ?= $(shell nproc 2>/dev/null || echo 2)
export BUILD JOBS HWY_DIR

# Set these two to use your own copies instead of the fetched ones.
ifndef HWY_DIR
HWY_DIR := $(BUILD)/highway
fetched += highway
endif
ifndef ONNXRUNTIME_SHARED_LIBRARY_PATH
ONNXRUNTIME_SHARED_LIBRARY_PATH := $(BUILD)/onnxruntime/libonnxruntime.so
fetched += onnxruntime
endif

# Tests, demos and generators run against what this Makefile built.
ROPE_OPS_LIBRARY := $(BUILD)/librope_ops.so
export ONNXRUNTIME_SHARED_LIBRARY_PATH ROPE_OPS_LIBRARY

# ONNX Runtime's telemetry stays off in everything that is run from here.
export ORT_DISABLE_TELEMETRY ?= 1

MAKEFLAGS += --no-print-directory
GO ?= go
GO_FILES = $(shell git ls-files --cached --others --exclude-standard '*.go' | grep -v '\.pb\.go$$')
CXX_FILES = $(shell git ls-files --cached --others --exclude-standard 'native/*.h' 'native/*.cc' 'native/*.c' 'native/*.cu' 'native/*.cuh' | grep -v '\.gen\.h$$')

# All that a first build needs is named at once, before anything is fetched.
tools := $(if $(ORT_INCLUDE_DIR),,$(GO)) g++ cmake
ifneq ($(filter onnxruntime,$(fetched)),)
tools += $(if $(wildcard $(BUILD)/onnxruntime/version),,python3 pip)
endif

# No command is a file.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## List these commands
	@echo "Usage: make COMMAND"; echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-16s %s\n", $$1, $$2 }'
	@echo; echo "HWY_DIR=DIR and ONNXRUNTIME_SHARED_LIBRARY_PATH=FILE use copies of your own instead of fetched ones."

build: cli native ## Build build/rope-rewrite and build/librope_ops.so

env: ## Print what puts the command on the PATH and names the libraries, for a shell: eval "$(make -s env)"
	@echo 'export PATH="$(BUILD):$$PATH" ONNXRUNTIME_SHARED_LIBRARY_PATH="$(ONNXRUNTIME_SHARED_LIBRARY_PATH)" ROPE_OPS_LIBRARY="$(ROPE_OPS_LIBRARY)" ORT_DISABLE_TELEMETRY="$(ORT_DISABLE_TELEMETRY)"'

tools:
	@sh scripts/need.sh $(tools)

deps: tools ## Fetch ONNX Runtime and Highway into build/ (once, about 30 MB)
	@for part in $(fetched); do sh scripts/fetch-$$part.sh || exit; done

cli: tools
	$(GO) build -trimpath -o $(BUILD)/rope-rewrite ./cmd/rope-rewrite

native: deps
	@sh scripts/build-native.sh $(BUILD)/native rope_ops -DCMAKE_BUILD_TYPE=Release
	@ln -sf native/librope_ops.so $(BUILD)/librope_ops.so

demo: build ## Rewrite a small real export and check it against its goldens (the first time 3 to 4 minutes)
	$(GO) run ./cmd/dev/demo

test: test-native test-go ## Run the tests, of long lists of cases a sample (8 min on two cores with empty caches, then 5)

test-all: test-native-all test-go-all ## Run every test, of long lists of cases a sample, also under older ONNX Runtimes (fetched once, 71 MB; 20 min)

test-every: test-native-all test-go-every ## Run every case of every test (an hour)

# The tests' heaps are small: collected as often as a large model needs it, they take two thirds more time.
# Nor need processes that evaluate small models give memory back after every call.
test-go test-go-all test-go-every: export GOGC ?= 400
test-go test-go-all test-go-every: export MALLOC_MMAP_THRESHOLD_ ?= 67108864
test-go test-go-all test-go-every: export MALLOC_TRIM_THRESHOLD_ ?= 268435456
# What properties are tried on is the same in every run, as what fuzz targets draw: 0 draws others each time.
test-go test-go-all test-go-every: export RAPID_SEED ?= 1
test-go: build
	$(gotest) -short $(packages)
	@$(left_out)

test-go-all: build
	$(gotest) $(packages)
	@$(left_out)

test-go-every: build
	ROPE_TEST_EVERY=1 $(gotest) $(packages)

# What samples leave out, with the command that has it.
left_out = awk 'match($$0, /left to make test-[a-z]+: /) { split(substr($$0, RSTART), word); \
		if (word[6] == "of") cases[word[4]] += word[5]; else { cases[word[4]] += 0; more[word[4]]++ } } \
	END { for (name in cases) printf "left to make %s %d cases, and %d tests or the rest of them\n", name, cases[name], more[name] }' $(BUILD)/tests.json

# Of the tests of one package, most wait for a process that evaluates: one package more than there are cores runs at a time.
gotest = $(GO) tool gotestsum --format pkgname --no-color --jsonfile $(BUILD)/tests.json -- -timeout 80m -p $(shell expr $(JOBS) + 1)
# The slow packages of cmd/dev come first, so that none runs alone at the end.
packages = ./cmd/dev/... ./... ./examples/serve/...

# make test leaves to make test-all: old runtimes, sanitizers, CUDA's kernels on the host, CPUs without vectors, and
# of the drawn calls of the kernel three quarters.
test-native: native ## Run the kernel's tests, and the op library in ONNX Runtime
	@sh scripts/build-native.sh $(BUILD)/native kernel_test -DCMAKE_BUILD_TYPE=Release
	@sh scripts/build-native.sh $(BUILD)/native plain_library_test -DCMAKE_BUILD_TYPE=Release
	@sh scripts/build-native.sh $(BUILD)/native hostile_test -DCMAKE_BUILD_TYPE=Release
	$(BUILD)/native/test/kernel_test 40 1000000
	ctest --test-dir $(BUILD)/native --output-on-failure --tests-regex '^(library_test_newest|hostile_.*)$$'

test-native-all: native ## Run all native tests, also under AddressSanitizer and old ONNX Runtimes
	@sh scripts/fetch-old-onnxruntimes.sh
	@sh scripts/build-native.sh $(BUILD)/native all -DCMAKE_BUILD_TYPE=Release
	ctest --test-dir $(BUILD)/native --output-on-failure --label-exclude cuda --parallel $(JOBS)

# Old ONNX Runtimes leak memory of their own, which is not looked for here. ThreadSanitizer watches
# the kernel on threads of the test's own: it knows nothing of those of a runtime built without it.
# HOSTILE is hostile_test's first seed, its cases and the seconds after which it ends anyway.
HOSTILE ?= 2000000 1000000 60
check-native: deps ## Run the kernel's tests under AddressSanitizer, UBSan and ThreadSanitizer
	@sh scripts/build-native.sh $(BUILD)/native-sanitized all -DCMAKE_BUILD_TYPE=Debug -DOLD_ONNXRUNTIME_VERSIONS= \
		'-DCMAKE_CXX_FLAGS=-O1 -fsanitize=address,undefined -fno-sanitize-recover=all'
	ctest --test-dir $(BUILD)/native-sanitized --output-on-failure
	$(BUILD)/native-sanitized/test/hostile_test $(BUILD)/native-sanitized/librope_ops.so $(HOSTILE)
	for target in kernel_test hostile_test; do \
		sh scripts/build-native.sh $(BUILD)/native-threads $$target -DCMAKE_BUILD_TYPE=Debug \
			'-DCMAKE_CXX_FLAGS=-O1 -fsanitize=thread' || exit 1; done
	$(BUILD)/native-threads/test/kernel_test 40 1000000
	$(BUILD)/native-threads/test/hostile_test $(BUILD)/native-threads/librope_ops.so $(HOSTILE)

CUDA_DIR ?= $(BUILD)/cuda-toolkit
# CUDA_CODE is nvcc's list of chips; empty is that of native/cuda/CMakeLists.txt. CUDA_FLAGS are further options.
CUDA_CODE ?=
CUDA_FLAGS ?=
cuda_options = -DCUDA_DIR=$(CUDA_DIR) $(if $(CUDA_CODE),'-DCUDA_CODE=$(CUDA_CODE)') '-DCUDA_FLAGS=$(CUDA_FLAGS)'
cuda: deps ## Build build/librope_ops_cuda.so, for the CPU and for CUDA (fetches a compiler once, 100 MB)
	@[ "$(CUDA_DIR)" != "$(BUILD)/cuda-toolkit" ] || sh scripts/fetch-cuda.sh
	@sh scripts/build-native.sh $(BUILD)/native rope_ops_cuda -DCMAKE_BUILD_TYPE=Release $(cuda_options)
	@ln -sf native/cuda/librope_ops_cuda.so $(BUILD)/librope_ops_cuda.so

check-cuda: cuda ## Check that the CUDA library loads and registers, and run its kernels where there is a GPU
	@sh scripts/fetch-old-onnxruntimes.sh
	@sh scripts/build-native.sh $(BUILD)/native cuda_check -DCMAKE_BUILD_TYPE=Release $(cuda_options)
	ctest --test-dir $(BUILD)/native --output-on-failure --label-regex cuda

cuda-bench: cuda ## Build build/librope_cuda_bench.so for native/cuda/bench/compare.py, which wants torch and a GPU
	@sh scripts/build-native.sh $(BUILD)/native rope_cuda_bench -DCMAKE_BUILD_TYPE=Release $(cuda_options)
	@ln -sf native/cuda/librope_cuda_bench.so $(BUILD)/librope_cuda_bench.so

gpu: build cuda-bench ## Run on this machine's GPU what no other machine can show, step by step; the same command goes on
	@sh scripts/build-native.sh $(BUILD)/native cuda_device_test -DCMAKE_BUILD_TYPE=Release $(cuda_options)
	@sh scripts/build-native.sh $(BUILD)/native rope_ops_misplaced -DCMAKE_BUILD_TYPE=Release $(cuda_options)
	@$(GO) test -c -o $(BUILD)/customop.test ./customop
	@$(GO) build -o $(BUILD)/mutants ./cmd/dev/mutants
	@sh native/cuda/bench/gpu.sh $(BUILD)/gpu

gpu-rehearsal: native ## Rehearse make gpu with the kernels emulated on the host (PATH's python3 may have torch and onnxruntime)
	@sh scripts/build-native.sh $(BUILD)/native cuda_emulation_test -DCMAKE_BUILD_TYPE=Release
	@sh scripts/build-native.sh $(BUILD)/native rope_cuda_bench_emulated -DCMAKE_BUILD_TYPE=Release
	@sh scripts/build-native.sh $(BUILD)/native rope_ops_emulated -DCMAKE_BUILD_TYPE=Release
	@$(GO) build -o $(BUILD)/mutants ./cmd/dev/mutants
	@sh native/cuda/bench/gpu.sh --emulated $(BUILD)/gpu-rehearsal

lint: ## Check formatting (gofmt, clang-format) and includes, and run go vet and staticcheck
	@sh scripts/need.sh $(GO) git
	@sh scripts/fetch-clang-format.sh
	@unformatted=$$(gofmt -l $(GO_FILES)); [ -z "$$unformatted" ] || { echo "rope-rewrite: run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	@$(BUILD)/clang-format/clang-format --dry-run --Werror $(CXX_FILES)
	@! grep -n '#include "\.\./' $(CXX_FILES) || { echo "rope-rewrite: include these by name, from a folder that CMake gives the target"; exit 1; }
	$(GO) vet $(packages)
	$(GO) tool staticcheck $(packages)

vulnerabilities: ## Look for known vulnerabilities in what the command and the server call (needs the internet)
	@sh scripts/need.sh $(GO)
	@sh scripts/vulnerabilities.sh ./cmd/rope-rewrite ./examples/serve

generate: ## Write generated files anew
	@sh scripts/need.sh $(GO)
	$(GO) generate $(packages)

generate-check: ## Fail if a generated file is not what its source says
	@sh scripts/need.sh $(GO) git
	@sh scripts/generate-check.sh

VARIANTS ?= optimum,dynamo18,dynamo23,genai-fp32,int4,fp16
smollm2: build ## Fetch SmolLM2-135M-Instruct and check the rewrite of its exports (170 MB; VARIANTS=dynamo18: 110 MB)
	$(GO) run ./cmd/dev/smollm2 --variant $(VARIANTS)

smollm2-targets: build ## Check what --target onnx and --target contrib make of the same exports
	$(GO) run ./cmd/dev/smollm2 --targets --variant $(VARIANTS)

bench: native ## Time the op beside ONNX Runtime's GroupQueryAttention (build/bench.json, build/bench.svg)
	@sh scripts/build-native.sh $(BUILD)/native rope_bench -DCMAKE_BUILD_TYPE=Release
	$(BUILD)/native/bench/rope_bench --library $(ROPE_OPS_LIBRARY) --json $(BUILD)/bench.json
	$(GO) run ./cmd/dev/measure table --plot $(BUILD)/bench.svg $(BUILD)/bench.json

bench-peers: build ## Time SmolLM2 beside llama.cpp and ONNX Runtime GenAI by turns (an hour; LENGTHS=512 ROUNDS=1: minutes; 4 GB on disk)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18 genai-fp32
	@sh scripts/bench-peers.sh
	$(GO) run ./cmd/dev/measure peers --plot $(BUILD)/peers.svg $(BUILD)/peers.json

bench-rotary: native ## Time Rotary beside a plain copy and ONNX Runtime's RotaryEmbedding
	@sh scripts/build-native.sh $(BUILD)/native rope_rotary_bench -DCMAKE_BUILD_TYPE=Release
	$(BUILD)/native/bench/rope_rotary_bench $(ROPE_OPS_LIBRARY) 1 21

bench-count: native ## Count the kernel's instructions and compare with the recorded ones (needs valgrind)
	@sh scripts/build-native.sh $(BUILD)/native rope_count -DCMAKE_BUILD_TYPE=Release
	@sh scripts/count-instructions.sh $(BUILD)/native/bench/rope_count native/bench/instructions.txt

bench-rewrite: build ## Time the rewrite of a 652 MB file beside cp, and its memory
	$(GO) run ./cmd/dev/smollm2 fetch --inline optimum
	$(GO) run ./cmd/dev/measure rewrite build/smollm2/optimum/model.inline.onnx

bench-sizes: build ## Rewrite and run models of the shapes of 1B and 7B (needs 10 GB of memory, 4 GB on disk; an hour or more)
	@sh scripts/bench-sizes.sh

# TORCH is a Python with testdata/scripts/requirements.txt; models are made once, in build/context.
TORCH ?= python3
ROUNDS ?= 5
bench-context: build ## Time LongRoPE's threshold, windows in a fixed cache and packed texts on random models (TORCH=PYTHON with torch)
	$(TORCH) scripts/context/models.py $(BUILD)/context
	$(TORCH) scripts/context/longrope.py $(BUILD)/context $(ROPE_OPS_LIBRARY) --rewrite $(BUILD)/rope-rewrite --rounds $(ROUNDS)
	$(TORCH) scripts/context/window.py $(BUILD)/context $(ROPE_OPS_LIBRARY) --rewrite $(BUILD)/rope-rewrite --rounds $(ROUNDS)
	$(TORCH) scripts/context/packed.py $(BUILD)/context $(ROPE_OPS_LIBRARY) --rewrite $(BUILD)/rope-rewrite --rounds $(ROUNDS)

longrope-transformers: ## Show what transformers generates across LongRoPE's threshold (TORCH=PYTHON with torch)
	$(TORCH) scripts/context/transformers_longrope.py testdata/goldens/longrope.npz

config-claims: ## Check that transformers computes what written config.json say (TORCH=PYTHON with testdata/scripts/requirements-newest.txt)
	$(TORCH) testdata/scripts/config_claims.py $(BUILD)/config-claims testdata/configs

coverage: build ## Rewrite the exports that scripts/coverage made and write docs/results/architectures.md
	$(GO) run ./cmd/dev/coverage -jobs $(JOBS) build/coverage

coverage-latest: build ## The same for ten architectures by the newest exporters, into docs/results/latest.md (fetches them, 13 GB on disk; EXPORTERS=PYTHON OPTIMUM=PYTHON have them)
	@sh scripts/coverage/latest.sh

eval-caches: build ## Measure what caches of int8 and float16 cost SmolLM2 at 2K, 8K and 12K (two hours)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18
	@sh scripts/eval-caches.sh

evidence: build ## Measure methods on SmolLM2 at 12K, and answers over packed documents, for docs/evidence.md (three hours)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18
	@sh scripts/evidence.sh

# Its models are those of make eval-caches.
profile-token: build ## Show where a token at 4,096 keys spends its time in SmolLM2 (TORCH=PYTHON with onnxruntime)
	$(TORCH) scripts/profile-token.py $(ROPE_OPS_LIBRARY) $(foreach type,float32 float16 int8,$(BUILD)/smollm2/dynamo18/$(type).onnx)

MUTANTS ?= 2000
SEED ?= 1
# PIECE is a file that keeps what was judged from SEED on; a run that was interrupted goes on there.
mutants: build ## Change real exports in one to three places each and look for one that a rewrite gets wrong (PIECE=FILE goes on where it ended)
	$(GO) run ./cmd/dev/mutants -judged $(MUTANTS) -seed $(SEED) -jobs $(JOBS) \
		$(if $(PIECE),-piece $(PIECE) -wrong $(PIECE).wrong -commit $(shell git rev-parse --short HEAD)) \
		$(wildcard testdata/models/*/model.onnx testdata/coverage/*/model.onnx testdata/field/*/model.onnx)

rare: ## Insert rare conditions into exports and look for one that is called equal for any number of tokens and is not (MUTANTS=2000: half an hour)
	ROPE_RARE=$(MUTANTS) ROPE_RARE_SEED=$(SEED) $(GO) test ./rewrite/internal/tests/rare -run TestRareConditions -timeout 90m

confirm: build ## Rewrite every test model by every method, and let validate confirm each (half an hour)
	$(GO) test ./cmd/rope-rewrite -run TestEveryRewriteIsConfirmed -v -timeout 90m -every

confirm-saved: build ## Rewrite every test model, save it again as Python's onnx and ONNX Runtime do, and let validate confirm each (15 min)
	@[ -x $(BUILD)/saved/bin/python ] || { python3 -m venv $(BUILD)/saved && $(BUILD)/saved/bin/pip install -q $$(grep -E '^(numpy|onnx|onnxruntime)==' testdata/scripts/requirements.in); }
	$(BUILD)/saved/bin/python testdata/scripts/save_again.py $(BUILD)/rope-rewrite $(ROPE_OPS_LIBRARY) testdata/models

# Each target of ./... that its package's tests run on a few inputs, on many more (FUZZ_TIMES), with others each time (FUZZ_SEED),
# and then for FUZZ_TIME each where go test is led by what an input reaches (0s leaves that out).
FUZZ_TIMES ?= 20
FUZZ_SEED ?= 1
FUZZ_TIME ?= 10s
fuzz: build ## Feed what reads other people's files with damaged ones (15 min; FUZZ_TIMES=1000 FUZZ_TIME=0s: hours)
	@GO="$(GO)" sh scripts/fuzz.sh $(FUZZ_TIMES) $(FUZZ_SEED) $(FUZZ_TIME)

hosts: build ## Run patched models in many hosts, without the op library and with it (fetches them once, 2.4 GB on disk)
	@sh scripts/hosts/run.sh

browser: build ## Generate with examples/browser in Chromium and compare the tokens (needs node and chromium; fetches 220 MB once)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18
	@sh scripts/hosts/browser.sh

ray: build ## Run examples/ray: what it answers and refuses, and load while a replica is killed (600 MB on disk)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18
	@sh scripts/hosts/ray.sh

browser-cases: browser ## Run the models of make hosts in Chromium with WebAssembly (PROVIDERS=webgpu: with WebGPU)
	@sh scripts/hosts/browser-cases.sh

serving: build ## Read the files for Triton and KServe with the schemas of their clients (fetches these once)
	@sh scripts/hosts/serving.sh

serve-clients: build ## Use examples/serve through OpenAI's client for Python and in Chromium (needs node and chromium; 135 MB once)
	$(GO) run ./cmd/dev/smollm2 fetch dynamo18
	@sh scripts/hosts/serve.sh

SOAK ?= 10m
serve-soak: build ## Keep examples/serve under more load than there is room for, and look at its memory each minute (SOAK=10m)
	$(GO) test ./examples/serve -run '^TestLoad$$' -count 1 -v -timeout 0 -soak $(SOAK)

docs: build ## Run every block of README.md and of docs/, also in Python, Node and C++ (fetches them once, 300 MB)
	@sh scripts/docs.sh

hosts-folders: build ## Run rewritten folders in ONNX Runtime GenAI, Optimum and transformers (fetches them once, 11 GB on disk)
	$(GO) run ./cmd/dev/smollm2 fetch genai-fp32
	$(GO) run ./cmd/dev/smollm2 fetch optimum
	@sh scripts/hosts/folders.sh

# PLATFORMS names others than this machine's; all is all five.
dist_platforms = $(filter-out all,$(or $(PLATFORMS),$(shell $(GO) env GOOS)_$(shell $(GO) env GOARCH)))

dist: deps ## Build a release for this machine from the last commit, in build/dist/out (PLATFORMS=all: for five; fetches zig once, 101 MB)
	@sh scripts/dist/dist.sh $(dist_platforms)

wheel: dist ## The same, for its Python wheel
	@ls $(BUILD)/dist/out/*.whl

dist-check: build ## Look at what make dist built, and run what can be run here
	$(GO) run ./cmd/dev/distcheck build/dist $(dist_platforms)
	@sh scripts/dist/run.sh

# ON names the machine for the page, PLATFORMS what to build in place of all five.
release-check: deps ## Before a release: two builds to the same bytes, and all of dist-check, into docs/results/release.md (an hour)
	@sh scripts/dist/release-check.sh $(PLATFORMS)

record: build ## Write what the command makes of every test model to build/record.txt, to compare before and after a change
	$(GO) run ./cmd/dev/record testdata/models/*/model.onnx $(wildcard $(BUILD)/smollm2/optimum/model.onnx) > $(BUILD)/record.txt

locks: ## Write every requirements.txt anew from its requirements.in, with versions and hashes of all packages
	@sh scripts/locks.sh

clean: ## Remove what was built (downloads stay)
	rm -rf $(BUILD)/rope-rewrite $(BUILD)/tests.json $(BUILD)/sizes $(BUILD)/librope_ops.so $(BUILD)/librope_ops_cuda.so $(BUILD)/librope_cuda_bench.so $(BUILD)/customop.test $(BUILD)/mutants $(BUILD)/host-cases $(BUILD)/native $(BUILD)/native-sanitized $(BUILD)/native-threads

clean-downloads: ## Remove what was fetched
	rm -rf $(BUILD)/downloads $(BUILD)/onnxruntime $(BUILD)/onnxruntime-old $(BUILD)/highway $(BUILD)/clang-format $(BUILD)/quantizer $(BUILD)/gguf $(BUILD)/cuda-toolkit $(BUILD)/hosts $(BUILD)/peers $(BUILD)/uv
