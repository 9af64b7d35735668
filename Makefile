# Every target creates the environment it needs: a fresh clone and python3.11+ are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The tests run many small tensors in two processes: one thread each is fastest.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2

.PHONY: help demo theory browser test test-all check format bench env clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

env: $(READY) ## create the environment in .venv

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "postmax needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY) ## the paper's breast-cancer tables with ten seeds: the table, and the path of its report
	@$(BIN)/postmax reproduce breast-cancer --scale quick

theory: $(READY) ## the theory on a finite problem: noisy, corrected and clean posteriors for every divergence
	@$(BIN)/python examples/finite_problem.py

browser: ## what the tests of the report page need: headless Chromium, where the system's packages have it
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get -qq update && \
		apt-get -qq install -y --no-install-recommends chromium chromium-driver >/dev/null; } || \
		echo "no Chromium here: the tests that open the report in it are skipped"

test: $(READY) ## the tests (a few minutes on two cores)
	$(TEST)

test-all: $(READY) ## the tests, slow ones included
	$(TEST) -m ''

check: $(READY) ## lint, format and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## speed of losses, corruption, batches and the training loop, each against its rival in the same run
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/corruption.py
	@$(BIN)/python benchmarks/batches.py
	@$(BIN)/python benchmarks/training.py

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
