# make demo   installs everything into .venv and runs a real convolution
# make test   ruff, mypy --strict, the test suite, and the real libMIOpen without a GPU
# make help   the rest

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES := -e . -e plugins/cpu_provider -e plugins/miopen_provider -e plugins/miopen_emulator
# The real libMIOpen, with stand-ins for the GPU below it: plugins/miopen_emulator/README.md.
NATIVE := $(BIN)/hipdnn emulator run --accept-only --or-skip -- python -m pytest tests/native
# MIOpen's numbers, by its own kernels compiled for this CPU: the same tests that make test-gpu runs.
NUMBERS := $(BIN)/hipdnn emulator run --or-skip -- python -m pytest tests/numbers tests/emulated tests/miopen_emulator/test_kernels.py
# A conv + bias + ReLU problem that a user pasted into a public report.
DEMO ?= MIOpenDriver CBAInfer -F 4 -n 128 -c 3 -H 32 -W 32 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1

.PHONY: help demo test lint test-full test-gpu fuzz bench clean

help:
	@sed -n 's/^# make/make/p' Makefile
	@echo "make lint       ruff and mypy --strict"
	@echo "make test-full  everything, slow tests and the full fuzz run included"
	@echo "make test-gpu   MIOpen's numbers on an AMD GPU, against the reference"
	@echo "make fuzz       100,000 driver lines and graphs, explained in process"
	@echo "make bench      the figures that README quotes, with peers in the same run"
	@echo "make clean      removes .venv and caches"

$(VENV)/.runtime: pyproject.toml plugins/cpu_provider/pyproject.toml plugins/miopen_provider/pyproject.toml plugins/miopen_emulator/pyproject.toml
	@$(PYTHON) -m venv $(VENV) || { echo "error: '$(PYTHON) -m venv' failed; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

demo: $(VENV)/.runtime
	$(BIN)/hipdnn run '$(DEMO)' --check

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest tests --ignore=tests/native --ignore=tests/numbers --ignore=tests/emulated -n auto -m "not slow"
	$(NATIVE) -n auto -m "not slow"
	$(NUMBERS) -n auto -m "not slow"

test-full: lint
	$(BIN)/python -m pytest tests --ignore=tests/native --ignore=tests/numbers --ignore=tests/emulated -n auto
	$(NATIVE) -n auto
	$(NUMBERS) -n auto
	$(MAKE) fuzz

test-gpu: $(VENV)/.dev
	$(BIN)/python -m pytest tests/numbers -rs

fuzz: $(VENV)/.dev
	HIPDNN_FUZZ_EXAMPLES=100000 $(BIN)/python -m pytest tests/fuzz -q

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
