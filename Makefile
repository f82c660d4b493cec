# libeman. `make` builds the library; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := library
.DELETE_ON_ERROR:

BUILD   := build
PREFIX  ?= /usr/local
DESTDIR ?=
PYTHON  ?= python3
MESH    ?=
ISA     ?=
PLATFORM ?=
SELECT  ?=

VERSION := $(shell sed -n 's/^\#define EMAN_VERSION_STRING "\(.*\)"/\1/p' include/eman.h)
ABI     := $(shell sed -n 's/^\#define EMAN_ABI_VERSION \([0-9]*\)/\1/p' include/eman.h)

VENV    := $(BUILD)/venv
PY      := $(VENV)/bin/python
include capi/package/platforms.mk

# With ISA=avx2, or another instruction set, the suites run as on a processor
# that has no faster one: the tag emantest obeys EMAN_TEST_ISA, and the tests
# fail where other kernels are taken.
ifneq ($(ISA),)
  TAGS    := -tags emantest
  export EMAN_TEST_ISA := $(ISA)
  export EMAN_LIBRARY  := $(CURDIR)/$(LIBRARY)
endif

GO_SOURCES := $(shell find capi core geometry simd -name '*.go' -o -name '*.s' -o -name '*.c' -o -name '*.h') \
              go.mod go.sum include/eman.h capi/exports.map
C_SOURCES  := $(shell find include capi tests -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.cpp')

# No path of this machine leaves with the library: the same sources and
# compilers give the same bytes in any folder.
GO_BUILD := $(GO_ENVIRONMENT) CGO_ENABLED=1 GOAMD64=v1 go build -buildmode=c-shared -trimpath $(TAGS)
# Go's cache of results does not see the variable that a package reads at its start.
GO_TEST  := go test $(if $(ISA),-count=1) $(TAGS)

STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: library help
library: $(LIBRARY) ## The shared library, build/libeman.so (the default)

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

$(LIBRARY): $(GO_SOURCES) $(INPUTS)
	@mkdir -p $(@D)
	$(GO_BUILD) -ldflags "-s -w -buildid= -extldflags '$(LINK)'" -o $@ ./capi
	@rm -f $(basename $@).h
	@$(if $(SONAME),ln -sf $(@F) $(@D)/$(SONAME))
	@$(CHECK)

# ------------------------------------------------------------------ Python

# An environment of the project's own; the package is installed in place.
$(VENV)/stamp: tests/requirements.txt bindings/python/pyproject.toml
	@echo "making a Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -q --disable-pip-version-check -r tests/requirements.txt
	@$(PY) -m pip install -q --disable-pip-version-check -e 'bindings/python[all]'
	@touch $@

.PHONY: python demo
python: $(LIBRARY) $(VENV)/stamp ## An environment, build/venv, in which `import eman` works
	@$(PY) -c 'import eman; print("eman", eman.build_info()["version"], "is importable in $(VENV)")'

demo: python rendering ## The main job on a mesh of its own, or on MESH=path
	$(PY) -m eman.demo --output $(BUILD)/demo $(if $(MESH),--mesh '$(MESH)')

.PHONY: wheel
wheel: library $(VENV)/stamp ## A wheel with the library and the models, build/wheel, tried with numpy 1.24 and numpy 2
	@rm -rf $(BUILD)/wheel
	$(PY) -m pip wheel -q --disable-pip-version-check --no-deps -w $(BUILD)/wheel bindings/python
	@PYTHON='$(PYTHON)' tests/scripts/try_wheel.sh $(BUILD)/wheel/*.whl

.PHONY: sdist
sdist: $(VENV)/stamp ## The package with the library's sources, build/sdist, tried with Go and without
	@rm -rf $(BUILD)/sdist
	$(PY) -m build -q --sdist -o $(BUILD)/sdist bindings/python
	@PYTHON='$(PYTHON)' tests/scripts/try_sdist.sh $(BUILD)/sdist/*.tar.gz

.PHONY: addon
addon: wheel ## The Blender add-on, build/addon: the extension (4.2 and later) and the legacy zip (3.4 to 4.1)
	$(PY) bindings/blender/build.py --package bindings/python/eman --library $(LIBRARY) --wheel $(BUILD)/wheel/*.whl \
	  --output $(BUILD)/addon

# ------------------------------------------------------------------ documentation

DOCS := bindings/python/docs
.PHONY: docs figures
$(VENV)/docs: $(DOCS)/requirements.txt $(VENV)/stamp
	@$(PY) -m pip install -q --disable-pip-version-check -r $<
	@touch $@

docs: library $(VENV)/docs ## The documentation, build/docs/index.html; a dead link or a missing name is an error
	@cd bindings/python && NO_MKDOCS_2_WARNING=1 ../../$(VENV)/bin/mkdocs build --clean

figures: library $(VENV)/docs rendering ## The pictures of the documentation, drawn again by its notebook
	@mkdir -p $(BUILD)/figures
	$(PY) $(DOCS)/run.py $(DOCS)/figures.ipynb $(BUILD)/figures
	@cp $(BUILD)/figures/*.png $(DOCS)/

# ------------------------------------------------------------------ tests

# Two parts at a time, as most of each runs on one core; what they install into
# the environment is there before.
PARTS := test-emulated test-processors test-python test-go test-blender test-packages test-interface test-docs test-hostile
.PHONY: test lint generated $(PARTS) rendering shells tools
test: lint generated ## Everything that CI runs
	@$(MAKE) library $(VENV)/docs $(VENV)/packaging
	@$(MAKE) -k -j2 --output-sync=target $(PARTS)

rendering:
	@tests/scripts/need.sh libegl1 libgl1 libgl1-mesa-dri libxrender1

shells:
	@tests/scripts/need.sh fish zsh

tools: rendering
	@tests/scripts/need.sh binutils binutils-aarch64-linux-gnu qemu-user

lint: $(VENV)/stamp ## Formatting and static analysis
	@echo "gofmt, go vet, staticcheck"
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	@go vet ./...
	@$(STATICCHECK) ./...
	@echo "clang-format, ruff, mypy"
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_SOURCES)
	@$(VENV)/bin/ruff check -q bindings capi tests
	@$(VENV)/bin/ruff format -q --check bindings capi tests
	@$(VENV)/bin/mypy --config-file bindings/python/pyproject.toml bindings/python/eman

generated: ## The committed assembly is what its generator writes
	@rm -rf $(BUILD)/simd && mkdir -p $(BUILD) && cp -r simd $(BUILD)/simd
	@go generate -run avo ./simd
	@diff -r simd $(BUILD)/simd && rm -r $(BUILD)/simd
	@go -C simd/avo vet .

test-go: tools ## Go tests, and once more under the race detector
	$(GO_TEST) ./...
	$(GO_TEST) -race ./geometry/...
	$(GO_TEST) -race -run 'Threads|ManyCallers|Fault|Stops|Cancel' ./core

# The kernels on processors that this machine may not be: without the faster
# instruction sets it has, and emulated: AVX2 without AVX-512, the first x86-64,
# and arm64, there with geometry and layers too. EMAN_TEST_ISA fails where other kernels
# are taken. Gradients against differences are in float64, which no set has.
OLDER   := $(if $(filter x86_64,$(shell uname -m)),avx2) generic
EMULATE := command -v qemu-x86_64 >/dev/null && command -v qemu-aarch64 >/dev/null
.PHONY: test-emulated older-library
test-processors: $(addprefix test-kernels-,$(OLDER)) test-emulated $(addprefix test-older-,$(OLDER)) ## Kernels and layers as on other processors

test-kernels-%:
	EMAN_TEST_ISA=$* go test -count=1 -tags emantest -short -skip AgainstDifferences ./simd ./geometry ./core

test-emulated: tools
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 GOARCH=amd64 go test -c -o $(BUILD)/simd-amd64.test ./simd
	CGO_ENABLED=0 GOARCH=arm64 go test -c -o $(BUILD)/simd-arm64.test ./simd
	CGO_ENABLED=0 GOARCH=arm64 go test -c -o $(BUILD)/geometry-arm64.test ./geometry
	CGO_ENABLED=0 GOARCH=arm64 go test -c -o $(BUILD)/core-arm64.test ./core
	@if $(EMULATE); then set -x; \
	  (cd simd; EMAN_TEST_ISA=avx2 qemu-x86_64 -cpu Haswell ../$(BUILD)/simd-amd64.test -test.short 2>/dev/null); \
	  (cd simd; EMAN_TEST_ISA=generic qemu-x86_64 -cpu qemu64 ../$(BUILD)/simd-amd64.test -test.short); \
	  (cd simd; EMAN_TEST_ISA=neon qemu-aarch64 ../$(BUILD)/simd-arm64.test -test.short); \
	  (cd geometry; EMAN_TEST_ISA=neon qemu-aarch64 ../$(BUILD)/geometry-arm64.test -test.short); \
	  (cd core; EMAN_TEST_ISA=neon qemu-aarch64 ../$(BUILD)/core-arm64.test -test.short \
	    -test.run 'Forced|LayersAgainst|VariantsAgainst|IsolatedVertex|ResultsAgree'); \
	else echo "qemu-user is not installed: emulated processors are skipped"; [ "$${CI:-}" != true ]; fi

older-library:
	@$(MAKE) library ISA=generic

test-older-%: older-library # the suites of the C interface and of Python
	$(MAKE) test-interface test-python ISA=$* SELECT='not older_processors'

# With CI=true no test may be skipped.
PYTEST := PYTHONPATH=$(CURDIR)/tests $(PY) -m pytest -q -p no_skips

# SELECT names some of the tests, as pytest -k does.
test-interface: library $(VENV)/stamp tools ## The C interface and the numpy reference
	$(PYTEST) tests --ignore=tests/blender --ignore=tests/hostile --ignore=tests/consumers $(if $(SELECT),-k '$(SELECT)')

test-python: library $(VENV)/stamp rendering shells ## The Python package
	$(PYTEST) bindings/python/tests $(if $(ISA),-m 'not once$(if $(filter generic,$(ISA)), and not long)')

test-packages: $(VENV)/packaging ## Packages, projects that use them, and the binary interface, on each platform
	@tests/scripts/need.sh cmake pkg-config abigail-tools clang llvm binutils dpkg-dev lintian \
	  g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user g++-mingw-w64-x86-64 wine wine64 libeigen3-dev doxygen
	@command -v rustc >/dev/null || tests/scripts/need.sh rustc
	$(PYTEST) tests/consumers $(if $(SELECT),-k '$(SELECT)')

test-docs: docs rendering ## Every example of the documentation, its notebook and its command reference
	$(PYTEST) $(DOCS) -c bindings/python/pyproject.toml

test-hostile: library $(VENV)/stamp tools ## Hosts, files and meshes that want to do harm
	@tests/scripts/need.sh valgrind
	$(PYTEST) tests/hostile

SECONDS ?= 3600
# glibc keeps what is freed in an arena for every other thread of the host.
.PHONY: soak
soak: library $(VENV)/stamp ## An hour (SECONDS=3600) of mixed work on many threads: right answers, flat memory
	MALLOC_ARENA_MAX=2 $(PY) tests/hostile/operations.py --seconds $(SECONDS)

# The C interface under libFuzzer, which sees the branches of the Go code, too.
# The address sanitizer watches what reads and writes the caller's memory: with
# the numerical code it would be ten times as slow.
FUZZER := $(BUILD)/fuzz/interface
$(FUZZER): tests/programs/fuzz_interface.c $(GO_SOURCES)
	@tests/scripts/need.sh clang libclang-rt-dev
	@mkdir -p $(@D)
	CC=clang CGO_ENABLED=1 go build -buildmode=c-archive -tags libfuzzer -asan -gcflags='libeman/...=-d=libfuzzer -asan=false' \
	  -gcflags='libeman/capi=-d=libfuzzer' -o $(BUILD)/fuzz/libeman.a ./capi
	clang -std=c11 -O1 -g -fsanitize=fuzzer,address -Iinclude $< $(BUILD)/fuzz/libeman.a -o $@ -pthread -lm -lresolv

.PHONY: fuzz fuzz-corpus
fuzz: $(FUZZER) ## Random meshes, files, descriptions and calls, an hour (SECONDS=3600) in all
	tests/scripts/fuzz.sh $(SECONDS) $(FUZZER) $(BUILD)/fuzz/found

fuzz-corpus: $(FUZZER) # takes what make fuzz found into tests/fuzz
	$(FUZZER) -merge=1 -handle_segv=0 -handle_bus=0 -handle_fpe=0 -detect_leaks=0 tests/fuzz $(BUILD)/fuzz/found 2>&1 | tail -n 3

# Servers answer these, so that they are no part of make test.
LICENSES := Apache-2.0,BSD-3-Clause,MIT
.PHONY: audit
audit: ## Known vulnerabilities (DB=file:///… where vuln.go.dev is out of reach), and the licences of what is linked
	@mkdir -p $(BUILD)
	go run github.com/google/go-licenses@v1.6.0 check ./capi --allowed_licenses=$(LICENSES) 2>$(BUILD)/licenses || { cat $(BUILD)/licenses; false; }
	@go run github.com/google/go-licenses@v1.6.0 report ./capi --ignore libeman 2>/dev/null
	@go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 $(if $(DB),-db $(DB)) ./... 2>$(BUILD)/govulncheck || { cat $(BUILD)/govulncheck; \
	  grep -q 'fetching vulnerabilities' $(BUILD)/govulncheck && echo "the database cannot be reached: vulnerabilities are not checked"; }

# Debian's Blender has the legacy zip; the extension is tried in Blender as a
# module, bpy of PyPI, which is for Python 3.11.
BPY := 4.5 5.0
test-blender: library $(VENV)/stamp rendering ## The add-on, in Blender itself
	@tests/scripts/need.sh blender xvfb xauth libegl1 libgl1-mesa-dri
	@for version in $(BPY); do tests/scripts/bpy.sh $$version $(BUILD)/bpy-$$version '$(PYTHON)'; done
	@$(PY) -m pip wheel -q --disable-pip-version-check --no-deps -w $(BUILD)/wheel bindings/python
	$(PYTEST) tests/blender

# ------------------------------------------------------------------ benchmarks

# NAME is that of build/bench/NAME.txt, the output of the Go benchmarks.
QUICK ?=
NAME  ?= $(shell git describe --always --dirty 2>/dev/null || echo latest)
.PHONY: bench
bench: library $(VENV)/stamp ## Our figures beside the machine's limit and beside peers (QUICK=1: in a minute)
	$(PY) tests/bench/table.py $(if $(QUICK),--quick) --name '$(NAME)' --json $(BUILD)/bench/$(NAME).json --markdown $(BUILD)/bench/$(NAME).md
	$(PY) tests/bench/calls.py

# ------------------------------------------------------------------ packages

include capi/package/install.mk
include capi/package/dist.mk

.PHONY: reference
reference: ## The reference of the C and C++ interfaces, build/reference, with doxygen
	@tests/scripts/need.sh doxygen
	@rm -rf $(BUILD)/reference && mkdir -p $(BUILD)/reference
	VERSION=$(VERSION) REFERENCE=$(BUILD)/reference doxygen include/Doxyfile

.PHONY: abi
abi: ## What a release keeps for ever, into tests/abi: its header, and libabigail's description of it
	install -D -m 644 include/eman.h tests/abi/$(VERSION)/eman.h
	tests/scripts/abi.sh include capi tests/abi/$(VERSION)/libeman.xml

.PHONY: clean
clean: ## Removes build/
	rm -rf $(BUILD)
