# Everything runs inside .venv, which each target makes for itself when it is missing or out of date.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
SCALE ?= quick
WORKERS ?= 3
PIP := $(RUN) -m pip --disable-pip-version-check --quiet

# Byte code is kept, as numba's is: else each of the many processes of the tests would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long check lint wheel bench reproduce docs clean

help:
	@echo "make demo       what links gain, on bundled data; writes build/demo/report.html"
	@echo "make test       lint, type-check, doctests and the whole test suite (WORKERS=2 for fewer processes)"
	@echo "make test-long  the same with all random cases and all combinations of settings (make test: a fifth, and every pair of values)"
	@echo "make check      lint, type-check and the tests that tests/quick.txt names: a minute, before every commit"
	@echo "make lint       ruff and mypy only"
	@echo "make wheel      the README with the built wheel in an empty environment, a few minutes"
	@echo "make bench      speed and memory, written to benchmarks/RESULTS.md (SECTION=graph for one section)"
	@echo "make reproduce  the papers' experiments, quick (SCALE=full for all draws, DATA=folder for more data sets)"
	@echo "make docs       the HTML documentation in docs/_build/html"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable ".[plot,cli,parquet,anndata,dask,raster,workbench]" --group dev
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) install --group docs
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install --group bench && touch $@ || echo "not all packages to compare with are there: their rows say so"

demo: $(VENV)/.dev
	$(RUN) -m linkwise demo

# mypy keeps what it knows of installed packages and of our files beside the packages: 1 s instead of a minute.
lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy --cache-dir $(VENV)/mypy_cache

# One process compiles the kernels, and another lints and then compiles them from the last to the first, until
# the first one has all: else all workers of the tests would compile the same. There is a worker more than
# there are cores to be used, because some tests wait, for browsers and for processes.
test: $(VENV)/.dev
	@$(RUN) -m tests.compile_kernels & kernels=$$!; \
	$(MAKE) --no-print-directory lint || { kill $$kernels; exit 1; }; \
	$(RUN) -m tests.compile_kernels --backwards & wait $$kernels; kill $$! 2> /dev/null || true
	$(RUN) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-long:
	LINKWISE_TEST_LONG=1 $(MAKE) --no-print-directory test

# mypy takes as long as the tests, and one core.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory lint & lint=$$!; \
	$(RUN) -m pytest -q -n 2 --dist worksteal @tests/quick.txt; status=$$?; wait $$lint && exit $$status

wheel: $(VENV)/bin/python
	$(RUN) -m tests.wheel

bench: $(VENV)/.bench
	$(RUN) -m benchmarks $(SECTION)

reproduce: $(VENV)/.dev
	$(RUN) -m experiments --$(SCALE) $(if $(DATA),--data $(DATA)) $(NAMES)

docs: $(VENV)/.docs
	rm -rf docs/reference/generated docs/gallery
	$(RUN) -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build docs/_build docs/reference/generated docs/gallery
