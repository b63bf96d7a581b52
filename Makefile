# Needs python3.11 or newer with pip, and nothing else: Java, node and PostgreSQL come as wheels.
# Of several the quickest build is taken, unless PYTHON names one.
PYTHON ?=
ANY_PYTHON := $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/setup.stamp
NODE := tests/wire/node
# dbt does not get on with our versions of what both depend on, so it lives apart.
DBT := .venv-dbt
DBT_STAMP := $(DBT)/setup.stamp
DBT_PINS := tests/wire/clients/dbt/constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup run test check slow bench golden format

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) $(DBT_STAMP) ## install, with pinned versions

# Build backends are installed with the same pins, so isolation (which ignores them) is off:
# hatchling builds this project, setuptools pyspark, which is published as source only.
$(STAMP): pyproject.toml constraints.txt $(NODE)/package.json
	test -x $(BIN)/python || $(ANY_PYTHON) tools/make_venv.py $(VENV) $(PYTHON)
	$(PIP) hatchling editables setuptools
	$(PIP) --no-build-isolation --editable '.[dev]'
	$(BIN)/npm install --prefix $(NODE) --no-package-lock --no-audit --no-fund --ignore-scripts \
	    --omit=optional --loglevel=error
	$(BIN)/python -m evertide.spark.class_archive
	touch $@

$(DBT_STAMP): $(STAMP) $(DBT_PINS)
	test -x $(DBT)/bin/python || $(shell command -v python3.11 || command -v python3) -m venv $(DBT)
	$(DBT)/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint $(DBT_PINS) dbt-core dbt-materialize
	touch $@

run: $(STAMP) ## the demo: a server, a source, views changing
	$(BIN)/evertide demo

check: $(STAMP) ## format, lint, types, layers, tidy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -q tests/test_tidy.py

# Several workers take whole files: mostly a test waits for some process. A run that takes longer
# than the limit is ill: it stops, and says what took so long. With ARGS, what these name, in turn.
WORKERS := 3
test: $(STAMP) $(DBT_STAMP) ## every promise, cheapest first; all but those marked slow
ifdef ARGS
	$(PYTEST) $(ARGS)
else
	$(PYTEST) --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder \
	    --session-timeout=4800 --durations=25
endif

slow: $(STAMP) ## soak, thousands of seeds, some of them fresh, long fault runs
	$(PYTEST) -m slow $(ARGS)

bench: $(STAMP) ## figures beside their baselines
	$(BIN)/python -m bench $(ARGS)

golden: $(STAMP) ## rewrite golden files
	$(PYTEST) tests/golden --rewrite-golden $(ARGS)

format: $(STAMP) ## rewrite the layout of the code, and what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
