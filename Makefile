# `make quickstart` and `make test` need Python 3.11 or later and nothing else: both make .venv themselves.
PYTHON ?= python3
VENV ?= .venv
# For a smaller grid: make quickstart OVERRIDES="seeds=1 fractions=[0.1,1]"
OVERRIDES ?=
BIN = $(VENV)/bin
# torch and torchvision first and pinned: a range would let pip take any build.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Two at a time: most of a test is a process that waits or imports. More of them would share the cores.
PYTEST = $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: quickstart test test-slow test-all lint bench clean

quickstart: $(VENV)/.installed
	$(BIN)/vitbench run quick $(OVERRIDES)

test: $(VENV)/.installed-dev lint
	$(PYTEST)

test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

test-all: $(VENV)/.installed-dev lint
	$(PYTEST) -m ''

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/quick.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vitbench needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) torch torchvision
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist
