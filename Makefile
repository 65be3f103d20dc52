# Tupelo: every task of a developer, one word each. `make help` lists them.
#
# Needs Rust (the version in Cargo.toml or newer), Python 3.11+ with venv and pip, and make. Python
# tools go into the private environment .venv, pinned in requirements/; nothing else is touched.
# A target that is up to date does nothing: the stamps below remember what was built from what.

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin

RUST_SOURCES := $(shell find crates python/src -name '*.rs' -o -name '*.md' -path '*/errors/*' 2>/dev/null) \
	$(wildcard Cargo.toml Cargo.lock crates/*/Cargo.toml python/Cargo.toml)
PYTHON_SOURCES := python tools examples benchmarks

.PHONY: help
help: ## list the targets
	@echo "Tupelo: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14 | sed 's/^/  /'

.PHONY: demo
demo: $(VENV)/.extension ## build what is needed, then show the space at work (about a minute)
	@$(BIN)/tupelo demo password --kill 2

.PHONY: build
build: $(VENV)/.extension ## build the Python extension and the command line into .venv

.PHONY: test
test: test-rust test-python ## run all tests, Rust and Python

.PHONY: test-rust
test-rust: ## run the Rust tests
	$(CARGO) test --workspace --locked
	$(CARGO) test --locked --package tupelo --features checked --test conformance --test bulk --test against_model --test exhaustive
	$(CARGO) test --locked --package tupelo-engine --features checked --test claims --test events --test first --test leases --test transactions --test transactions_own --test transactions_over --test room_back
	$(CARGO) test --locked --package tupelo-engine --features checked --lib watched

.PHONY: test-python
test-python: $(VENV)/.extension $(VENV)/.dev ## run the Python tests
	$(BIN)/pytest

.PHONY: bench
bench: $(VENV)/.extension $(VENV)/.dev ## measure beside yardsticks (a machine with nothing else to do)
	$(CARGO) bench --locked --package tupelo --bench pair --bench waiting --bench claims --bench lateness
	$(BIN)/python benchmarks/pair.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python benchmarks/pool.py
	$(BIN)/python benchmarks/queues.py

.PHONY: report
report: $(VENV)/.extension $(VENV)/.peers ## run the evaluation suite in full, into docs/results (up to BUDGET=90 minutes)
	$(BIN)/tupelo bench all --budget $(or $(BUDGET),90) --out docs/results

.PHONY: torture
torture: export TUPELO_EVERY_INSTRUCTION = 1
torture: export TUPELO_TORTURE_SECONDS ?= 60
torture: export TUPELO_CANCELLATIONS ?= 100000
# The two crates that are killed at each instruction are optimised: as for other tests they have about twice as many.
# Where not all instructions are killed at: others each day, and those of a day that is given.
torture: export TUPELO_PHASE ?= $(shell date +%j | sed 's/^0*//')
torture: $(VENV)/.extension $(VENV)/.dev ## the long forms of the tests of crashes, cancellations and hostile input (hours)
	@echo "run again with TUPELO_PHASE=$$TUPELO_PHASE"
	$(BIN)/pytest python/tests/test_aio_cancel.py
	$(CARGO) test --workspace --exclude tupelo-shm --exclude tupelo-engine --locked --no-fail-fast
	$(CARGO) test --profile torture --locked --no-fail-fast --package tupelo-shm --package tupelo-engine

.PHONY: check
check: check-rust check-python check-tree ## check format, lints, documentation, types, layers and file sizes

.PHONY: check-rust
check-rust: ## format, lints and documentation of the Rust code
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --package tupelo-engine --all-targets --features checked --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --exclude tupelo-python --no-deps --document-private-items --locked

.PHONY: check-python
check-python: $(VENV)/.extension $(VENV)/.dev ## format, lints and types of the Python code
	$(BIN)/ruff format --check $(PYTHON_SOURCES)
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/mypy

.PHONY: check-tree
check-tree: ## layers, home of unsafe, file sizes, host names
	$(PYTHON) tools/check_layers.py
	$(PYTHON) tools/check_files.py

.PHONY: format
format: $(VENV)/.dev ## format everything in place
	$(CARGO) fmt --all
	$(BIN)/ruff format $(PYTHON_SOURCES)
	$(BIN)/ruff check --fix $(PYTHON_SOURCES)

.PHONY: clean
clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tools examples -name __pycache__ -prune -exec rm -rf {} +
	rm -f python/tupelo/*.so

# --- stamps ---

# `maturin develop` leaves a link to python/tupelo in .venv: a change of Python code needs no rebuild.
$(VENV)/.extension: $(VENV)/.build $(RUST_SOURCES) pyproject.toml
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --locked
	@touch $@

$(VENV)/.build: requirements/build.txt | $(VENV)/.python
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.build
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/.peers: requirements/bench.txt $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	  "Python 3.11 or newer is needed, $(PYTHON) is %d.%d: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo "cargo is missing: install Rust with rustup" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
