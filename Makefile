# Everything is installed into .venv and kept in .weir; nothing else on the machine is touched.
SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The first Python that fits; PYTHON=... names one.
define with_python
for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
  "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && break; \
  python=; \
done; \
[ -n "$$python" ] || { \
  echo "Wrong Python: weir needs 3.11 to 3.13; $(or $(PYTHON),python3) is $$($(or $(PYTHON),python3) --version 2>&1 | head -1)." >&2; \
  echo "Remedy: install one (Debian, Ubuntu: apt install python3.12 python3.12-venv), or name it: make setup PYTHON=..." >&2; \
  exit 69; }; \
"$$python"
endef

setup: ## install packages, jars and Java into .venv
	@$(with_python) -m infra.setup

tools:
	@$(with_python) -m infra.setup --tools

installed:
	@[ -x $(BIN)/weir ] || { echo "weir is not installed, or half of it: $(BIN)/weir is missing." >&2; \
	  echo "Remedy: make setup" >&2; exit 69; }

demo: setup ## start everything, show first results, stop it all on ctrl-C
	@exec $(BIN)/weir demo

up: setup ## start the platform in the background
	@exec $(BIN)/weir up

down: installed ## stop the platform
	@exec $(BIN)/weir down

doctor: installed ## examine the machine and the installation
	@exec $(BIN)/weir doctor

quick: tools ## run the tests that need no service, in a minute
	@exec $(BIN)/python -m pytest -m quick

test: tools ## run the tests that every change must pass, on a real broker, Postgres and Spark
	@exec $(BIN)/python -m pytest -m "not long"

test-long: tools ## run the long ones: a cluster, frozen brokers, a kill at each step, history from tables
	@exec $(BIN)/python -m pytest -m long

mutants: tools ## break the platform in ten named ways, each in a copy, and see that a test notices
	@exec $(BIN)/python -m tests.mutants

bench: tools ## measure speed, freshness, growth, memory, for an hour; keep the table in infra/benchmarks
	@exec $(BIN)/python -m tests.benchmarks

check: tools ## lint, format, types, import contracts: all four, whatever the first says
	@failed=; for tool in "ruff check" "ruff format --check" pyright lint-imports; do \
	  echo "== $$tool"; $(BIN)/$$tool || failed="$$failed '$$tool'"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

clean: ## stop the platform and delete its state and all caches; .venv and failing examples stay
	@[ ! -x $(BIN)/weir ] || $(BIN)/weir down
	rm -rf .weir .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: help setup tools installed demo up down doctor quick test test-long mutants bench check clean
