# Each target does its own set-up in .venv: a fresh machine needs make and Python 3.11 or newer, nothing else.
# make PYTHON=/path/to/python ... chooses the interpreter.

.PHONY: help demo test test-long check lint mypy pyright floors docs-in-step bench coverage venv format clean FORCE
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?=
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
SEEK := $(PYTHON) $(if $(PYTHON),,python3.14 python3.13 python3.12 python3.11 python3 python)

help:
	@echo 'make demo      a recorded session: imported, replayed, audited, crashed, exported'
	@echo 'make test      all tests'
	@echo 'make test-long the log against its model, for half an hour or more: 3,000 random histories'
	@echo 'make check     lint, types, import floors, docs in step'
	@echo 'make bench     the benchmarks'
	@echo 'make coverage  the tests with branch coverage; codec, log and reducers must be at 100 %'
	@echo 'make venv      only the environment, with the development tools'

demo: $(VENV)/.core
	@$(PY) examples/demo.py

# Two workers even on one core: much of a run waits for a disk or for a child.
test: $(VENV)/.dev
	$(PY) -m pytest -n 2 --dist loadfile

test-long: $(VENV)/.dev
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n 2 -o faulthandler_timeout=0 tests/log/test_stateful.py

bench: $(VENV)/.dev
	$(PY) -m bench

# make -k check shows all that is wrong, not only the first.
check: lint mypy pyright floors docs-in-step

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

mypy: $(VENV)/.dev
	$(PY) -m mypy --strict -p ef

pyright: $(VENV)/.dev
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(PY) -m pyright --pythonpath $(PY)

floors: $(VENV)/.dev
	$(VENV)/bin/lint-imports

docs-in-step: $(VENV)/.dev
	$(if $(wildcard docs/generate.py),$(PY) docs/generate.py --check,@echo 'no generated docs yet')

format: $(VENV)/.dev
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# The paths that measure the three packages where a missed branch loses data. coverage resolves links: reducers, not ef/reducers.
coverage: $(VENV)/.dev
	$(PY) -m coverage erase
	$(PY) -m coverage run -m pytest
	$(PY) -m coverage combine --quiet
	$(PY) -m coverage report
	$(PY) -m coverage report --include='ef/codec/*,ef/log/*,reducers/*' --fail-under=100

venv: $(VENV)/.dev

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov

# ------------------------------------------------------------------------------------------------------------ set-up
# .python: an interpreter that answers, in a tree that was not moved (the scripts and the editable link hold full paths).
# .core: what users get. .dev: the tools as well.

ifneq ($(shell cat $(VENV)/.python 2>/dev/null && $(PY) -c 'print("answers")' 2>/dev/null),$(CURDIR) answers)
$(VENV)/.python: FORCE
endif

$(VENV)/.python:
	@lacking=; chosen=; \
	for candidate in $(SEEK); do \
	    "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	    if "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then chosen=$$candidate; break; fi; \
	    lacking=$$candidate; \
	done; \
	if [ -z "$$chosen" ] && [ -n "$$lacking" ]; then \
	    echo "$$lacking is new enough but cannot make virtual environments (its venv or ensurepip module is missing)." >&2; \
	    echo 'On Debian and Ubuntu: apt-get install python3-venv. Then run make again.' >&2; exit 1; \
	fi; \
	if [ -z "$$chosen" ]; then \
	    echo 'Python 3.11 or newer is needed, and none was found (looked for: $(strip $(SEEK))).' >&2; \
	    echo 'Install one, or name it: make PYTHON=/path/to/python ...' >&2; exit 1; \
	fi; \
	echo "making $(VENV) with $$chosen ($$("$$chosen" -c 'import platform; print(platform.python_version())'))"; \
	"$$chosen" -m venv --clear $(VENV)
	@printf '%s\n' '$(CURDIR)' > $@

# An editable install also copies what the wheel includes by force. The copies are never imported; gone, nobody reads a stale one.
DROP_COPIES = @rm -rf $(VENV)/lib/python3.*/site-packages/ef

$(VENV)/.core: pyproject.toml $(VENV)/.python
	$(PIP) -e .
	$(DROP_COPIES)
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.core
	$(PIP) -e '.[dev]'
	$(DROP_COPIES)
	@touch $@
