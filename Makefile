# Every target works from a fresh clone: it makes .venv first where there is none.
# TANDEMQ_SOAK=1 asks the tests for their long figures.

PYTHON ?= $(if $(shell command -v python3.11),python3.11,python3)
BIN := .venv/bin
STAMP := .venv/.installed
FAST := --ignore=tests/interop --ignore=tests/crash --ignore=tests/corpus -m "not slow"

.DEFAULT_GOAL := check
.PHONY: check lint format fast test interop crash chaos soak bench corpus histories coverage wheel clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fast,dev]'
	touch $@

## check: format, lint, types, imports, fast tests; under two minutes
check: lint fast

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fast: $(STAMP)
	$(BIN)/python -m pytest $(FAST)

## format: rewrite the sources as the linter wants them
format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## test: the checks, then every test that this machine can run
test: lint
	$(BIN)/python -m pytest

## interop: the official clients with 10,000 jobs
interop: $(STAMP)
	TANDEMQ_SOAK=1 $(BIN)/python -m pytest --timeout=1200 tests/interop

## crash: kill -9 under load, 5 times
crash: $(STAMP)
	$(BIN)/python -m pytest tests/crash

## chaos: three minutes of a network that fails in every way, for callers and for workers
chaos: $(STAMP)
	TANDEMQ_CHAOS_SECONDS=180 $(BIN)/python -m pytest --timeout=1200 tests/chaos tests/client/test_worker_chaos.py

## soak: everything with its long figures: 20 kills, 10,000 jobs, many histories
soak: $(STAMP)
	TANDEMQ_SOAK=1 $(BIN)/python -m pytest --timeout=3600

## corpus: the recorded scenarios
corpus: $(STAMP)
	$(BIN)/python -m pytest tests/corpus

## histories: many random histories of the engine against its model
histories: $(STAMP)
	TANDEMQ_SOAK=1 $(BIN)/python -m pytest --timeout=3600 tests/histories

## bench: server CPU per job, beside the reference
bench: $(STAMP)
	$(BIN)/python bench/run.py

## coverage: the fast tests, measured
coverage: $(STAMP)
	$(BIN)/python -m coverage run -m pytest $(FAST)
	$(BIN)/python -m coverage report

## wheel: what would be released
wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf .scratch build dist htmlcov .coverage .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
