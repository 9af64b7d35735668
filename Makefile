# Every target creates the environment it needs: a fresh clone and python3.11+ are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One process for each core, up to eight (tests/conftest.py). The tensors are small: one thread each is fastest.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

.PHONY: help demo theory browser test-fast test mutants test-all check format hooks bench env clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

env: $(READY) ## create the environment in .venv

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "postmax needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY) ## run the paper's breast-cancer tables with ten seeds; prints the table and the path of its report
	@$(BIN)/postmax reproduce breast-cancer --scale quick

theory: $(READY) ## show the theory on a finite problem: noisy, corrected and clean posteriors for every divergence
	@$(BIN)/python examples/finite_problem.py

browser: ## install headless Chromium for the tests of the report page, where the system's packages have it
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get -qq update && \
		apt-get -qq install -y --no-install-recommends chromium chromium-driver >/dev/null; } || \
		echo "Chromium is not installed: the tests that open the report in it are skipped"

test-fast: $(READY) ## run every quick test with two of its cases (under a minute on two cores)
	$(TEST) --sample 2 -m 'not slow and not thorough'

test: $(READY) ## run the tests (a few minutes on two cores)
	$(TEST)

mutants: $(READY) ## change one line of the library at a time and check that the tests notice
	$(BIN)/python tests/mutation/check.py

test-all: $(READY) ## run all tests, the slow ones and the mutants included
	$(TEST) -m ''
	$(MAKE) mutants

check: $(READY) ## lint, format, strict types and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## correct what ruff can correct
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(READY) ## run the checks before every commit, with pre-commit
	$(BIN)/pre-commit install

bench: $(READY) ## measure the speed of losses, corruption, batches, the training loop, the fast network and the start of commands
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/corruption.py
	@$(BIN)/python benchmarks/batches.py
	@$(BIN)/python benchmarks/training.py
	@$(BIN)/python benchmarks/fast_network.py
	@$(BIN)/python benchmarks/start_up.py

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
