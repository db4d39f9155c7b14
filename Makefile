# Two words for newcomers: `make demo` and `make test`. Each sets everything up by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests often wait: for a browser, a database, a moment. So there is one more than there are cores.
JOBS ?= $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
TESTS ?=
ROUNDS ?= 20
# What waits for something: browsers, processes, servers, clocks.
WAITING = tests/service tests/ledger/test_faults.py tests/cli/test_serve.py tests/cli/test_startup.py \
	tests/test_client.py tests/docs/test_site.py

.PHONY: help demo test steady lint types docs reference package image bench clean

help:
	@echo "make demo    set up, then release one context on synthetic data"
	@echo "make test    set up, then run lint, type checks and all tests"
	@echo "make steady  the tests that wait for something, many times on a machine that is busy"
	@echo "make lint    ruff (style and errors) and formatting"
	@echo "make types   mypy, strict"
	@echo "make docs    the documentation, in build/site (make reference: its generated pages)"
	@echo "make package build pcor and pcor-client, install each in an empty environment, release there, weigh them"
	@echo "make image   build the service's image with buildah, start it, release through it"
	@echo "make bench   speed against the naive way, measured in one run"
	@echo "make clean   remove the environment and caches"

# The environment grows in two steps, each again when pyproject.toml changes: what a release, its letter
# and its signature need, and what tests need (a browser's driver, Spark, other engines: most of it).
$(VENV)/core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "PCOR needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	@echo "== setting up: a virtual environment in $(VENV) with pcor in it (under a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[letter,sign]'
	@touch $@

$(VENV)/ready: $(VENV)/core
	@echo "== setting up: what the tests need, about 2 GB (a minute or two, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/core
	@echo "== pcor demo: one private release on built-in synthetic salaries"
	@$(BIN)/pcor demo

test: $(VENV)/ready lint types
	@echo "== tests, $(JOBS) at a time (ten minutes on two cores; those that need a missing part say so)"
	@$(BIN)/python -m pytest --numprocesses $(JOBS) $(TESTS)

# Tests start hundreds of interpreters: each would compile the whole package anew.
test steady: export PYTHONDONTWRITEBYTECODE =

# Eight busy loops for each core; they end with the tests, however those end.
steady: $(VENV)/ready
	@echo "== steady: what waits for something, $(ROUNDS) times beside eight busy loops for each core"
	@trap 'kill $$loops 2>/dev/null' EXIT; trap 'exit 1' INT TERM; \
	for _ in $$(seq $$((8 * $$(getconf _NPROCESSORS_ONLN)))); do \
	  while :; do :; done & loops="$$loops $$!"; done; \
	for round in $$(seq $(ROUNDS)); do echo "== round $$round"; \
	  $(BIN)/python -m pytest -q -x --numprocesses $(JOBS) $(or $(TESTS),$(WAITING)) || exit 1; done

lint: $(VENV)/ready
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/ready
	@echo "== types"
	@$(BIN)/mypy

docs: $(VENV)/ready
	@echo "== docs: the site, in build/site"
	@$(BIN)/zensical build --clean --strict
	@echo "open build/site/index.html"

reference: $(VENV)/ready
	@echo "== reference: docs/reference from the code"
	@$(BIN)/python -m tools.reference

package: $(VENV)/ready
	@echo "== package: wheel and source archive in dist/, tried in an empty environment (a few minutes)"
	@$(BIN)/python -m tools.packaging

image: $(VENV)/ready
	@echo "== image: built with buildah in a temporary folder, started, asked (some minutes; PCOR_BASE=debian: no registry)"
	@$(BIN)/python -m tools.image

bench: $(VENV)/ready
	@echo "== bench: ratios against the naive way, measured in this run"
	@$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.nb[ic]' -delete
