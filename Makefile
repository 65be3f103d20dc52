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
PYTHON_SOURCES := python bench tools examples benchmarks

.PHONY: help
help: ## list the targets
	@echo "Tupelo: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14 | sed 's/^/  /'

DEMO_SERVER = $(if $(URL),--server $(URL))

.PHONY: demo
demo: $(VENV)/.extension ## build what is needed, then show the space at work (about a minute); URL= of a server
	@$(BIN)/tupelo demo password --kill 2 $(DEMO_SERVER)

.PHONY: build
build: $(VENV)/.extension $(VENV)/.suite ## build the Python extension, the command line and the evaluation suite into .venv

.PHONY: wheel
wheel: $(VENV)/.extension ## pack what `make build` has built as a wheel, into dist/
	rm -rf dist
	$(BIN)/maturin build --release --locked --out dist
	$(PYTHON) tools/check_wheel.py dist

.PHONY: test
test: test-rust test-python ## run all tests, Rust and Python, but for those of the evaluation suite

# A process per test on all processors, where there is a cargo-nextest for this machine; else the same tests, a program at a time.
NEXTEST = $(shell test -x $(BIN)/cargo-nextest && echo $(BIN)/cargo-nextest)
# One test more than there are processors: a third of the time the tests wait for processes that they have stopped.
RUST_TESTS = $(if $(NEXTEST),$(NEXTEST) nextest run --test-threads $(shell echo $$(($$(nproc) + 1))),$(CARGO) test --no-fail-fast)
# With the feature `checked` every access to a block that is not in use panics. One choice of packages and features, so one build.
CHECKED := --package tupelo-shm --package tupelo-engine --package tupelo --features tupelo-shm/checked,tupelo/checked

.PHONY: test-rust
test-rust: $(VENV)/.nextest ## run the Rust tests
	$(RUST_TESTS) --workspace --locked --tests
	$(RUST_TESTS) $(CHECKED) --locked --test checked --test one_thread --test journal
	$(CARGO) test --workspace --exclude tupelo-python --locked --doc

# Two per processor: a third of the time the tests wait for processes that they have started.
PYTEST := $(BIN)/pytest -n $(shell echo $$((2 * $$(nproc))))

.PHONY: test-python
test-python: $(VENV)/.extension-tested $(VENV)/.suite $(VENV)/.dev ## run the Python tests; pages call the suite, too
	$(PYTEST)

# In an environment of its own: schemathesis is a plugin of pytest, too, and brings its own versions.
.PHONY: test-http
test-http: $(VENV)/.http ## ask a server over HTTP what its OpenAPI document allows and forbids (some minutes)
	$(CARGO) build --locked --package tupelo-cli
	$(PYTHON) tools/check_http.py target/debug/tupelo

.PHONY: test-bench
test-bench: $(VENV)/.extension-tested $(VENV)/.suite $(VENV)/.dev ## run the tests of the evaluation suite
	$(BIN)/pytest -n auto bench/tests

.PHONY: bench
bench: $(VENV)/.extension $(VENV)/.dev ## measure beside yardsticks (a machine with nothing else to do)
	$(CARGO) bench --locked --package tupelo --bench pair --bench waiting --bench claims --bench lateness --bench durable
	$(CARGO) bench --locked --package tupelo-server --bench network
	$(BIN)/python benchmarks/pair.py
	$(BIN)/python benchmarks/tasks.py
	$(BIN)/python benchmarks/pool.py
	$(BIN)/python benchmarks/queues.py
	$(BIN)/python benchmarks/durable.py
	$(BIN)/python benchmarks/network.py

.PHONY: report
report: $(VENV)/.extension $(VENV)/.suite $(VENV)/.peers ## run the evaluation suite in full, into docs/results (up to BUDGET=90 minutes)
	$(BIN)/tupelo bench all --budget $(or $(BUDGET),90) --out docs/results

# Without the network: all that the pages load is in the site. A warning, as of a link that leads nowhere, is an error.
.PHONY: docs
docs: $(VENV)/.extension-tested $(VENV)/.docs ## build the documentation site into site/, with the reference of Python
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Where a test tries only a sample of the instructions, TUPELO_PHASE says which: the day of the year, unless it is given.
# The memory and the engine are optimised: else the scripts that are killed at each instruction have about twice as many.
# A part that fails does not keep the others from running.
TORTURE = $(RUST_TESTS) --locked $(if $(NEXTEST),--no-fail-fast --profile torture)
.PHONY: torture
torture: export TUPELO_EVERY_INSTRUCTION = 1
torture: export TUPELO_TORTURE_SECONDS ?= 60
torture: export TUPELO_CANCELLATIONS ?= 100000
torture: export TUPELO_PHASE := $(or $(TUPELO_PHASE),$(shell date +%j | sed 's/^0*//'))
torture: $(VENV)/.extension $(VENV)/.dev $(VENV)/.nextest ## the long forms of the tests of crashes, cancellations and hostile input (about three hours)
	@echo "about three hours on two processors; to run the same again: make torture TUPELO_PHASE=$$TUPELO_PHASE"
	@date +%s >$(VENV)/.torture-began
	@failed=0; \
	$(BIN)/pytest python/tests/test_aio_cancel.py || failed=1; \
	$(TORTURE) --workspace --exclude tupelo-shm --exclude tupelo-engine || failed=1; \
	$(TORTURE) $(if $(NEXTEST),--cargo-profile,--profile) torture --package tupelo-shm --package tupelo-engine || failed=1; \
	$(TORTURE) $(CHECKED) --test checked --test one_thread --test journal || failed=1; \
	echo "it took $$(( ($$(date +%s) - $$(cat $(VENV)/.torture-began)) / 60 )) minutes"; \
	exit $$failed

.PHONY: check
check: check-rust check-python check-tree ## check format, lints, documentation, types, layers, file sizes and prose

.PHONY: check-rust
check-rust: ## format, lints and documentation of the Rust code
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy $(CHECKED) --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --exclude tupelo-python --no-deps --document-private-items --locked

.PHONY: check-python
check-python: $(VENV)/.dev ## format, lints and types of the Python code
	$(BIN)/ruff format --check $(PYTHON_SOURCES)
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/mypy

.PHONY: check-tree
check-tree: ## layers, home of unsafe, file sizes, host names, length of sentences
	$(PYTHON) tools/check_layers.py
	$(PYTHON) tools/check_files.py
	$(PYTHON) tools/check_prose.py

.PHONY: format
format: $(VENV)/.dev ## format everything in place
	$(CARGO) fmt --all
	$(BIN)/ruff format $(PYTHON_SOURCES)
	$(BIN)/ruff check --fix $(PYTHON_SOURCES)

.PHONY: clean
clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf $(VENV) dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python bench tools examples benchmarks -name __pycache__ -prune -exec rm -rf {} +
	rm -f python/tupelo/*.so

# --- stamps ---

# `maturin develop` leaves a link to python/tupelo in .venv: a change of Python code needs no rebuild.
DEVELOP = VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --locked

$(VENV)/.extension: $(VENV)/.build $(RUST_SOURCES) pyproject.toml
	$(DEVELOP) --release
	@touch $@ $(VENV)/.extension-tested

# What the tests use: the extension of `make build` if it is up to date; else one with the checks of a debug build, which shares
# what is compiled with the tests of Rust. It takes the place of the other, which `make build` builds again.
$(VENV)/.extension-tested: $(VENV)/.build $(RUST_SOURCES) pyproject.toml
	@rm -f $(VENV)/.extension
	$(DEVELOP)
	@touch $@

$(VENV)/.build: requirements/build.txt | $(VENV)/.python
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# The evaluation suite is a distribution of its own. It is a link to bench/: a change there needs no installation.
$(VENV)/.suite: bench/pyproject.toml $(VENV)/.build
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable bench
	@touch $@

# Where there is none for this machine, `cargo test` runs the same tests.
$(VENV)/.nextest: requirements/nextest.txt | $(VENV)/.python
	$(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: --requirement $< || \
	  echo "cargo-nextest could not be installed: cargo test runs the same tests, and takes longer; to try again: rm $@"
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.build
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/.http: requirements/http.txt | $(VENV)/.python
	$(PYTHON) -m venv $(VENV)/http
	$(VENV)/http/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.build
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
