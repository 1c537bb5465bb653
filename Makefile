# `make` lists what there is. Every target brings its own tools: nothing has to be prepared.
#   PYTHON=/path/to/python3.12   choose the Python
#   PORT=9000                    choose the port of `make demo`
#   ARGS=...                     more arguments for the tests or the bench
.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin/python
PORT ?= 8000
test-rabbitmq: MATRIX ?= points
export PYTHON
export UV

# What works on the database (but for what is long and says nothing about SQL), and what works with real workers.
DATABASE_TESTS := tests/platform/test_migrations.py tests/runs tests/approvals tests/accounts tests/replay tests/gates \
	tests/fixtures_schema $(addprefix --ignore=tests/runs/test_,storm.py stateful.py fencing.py summaries.py artifacts.py)
WORKER_TESTS := tests/matrix tests/story/test_workers.py tests/story/test_broker.py tests/platform/test_broker.py \
	tests/platform/test_outside_broker.py

.PHONY: help demo test test-pg15 test-rabbitmq matrix check smoke bench gates logs demo-reset lock catalogues format clean base dev

help:  ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):[a-z ]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

base:
	@MAKE_TARGET=demo bin/bootstrap base

dev:
	@MAKE_TARGET=test bin/bootstrap dev

demo: base  ## Set everything up and run the product with demo data, until Ctrl-C
	@exec $(PY) manage.py up --demo --port $(PORT)

test: dev  ## Set everything up and run the tests (ARGS="-k name", BROWSER=none)
	@exec $(PY) -m pytest -n 2 --dist worksteal $(ARGS)

test-pg15: dev  ## Run the database tests on PostgreSQL 15 (package postgresql-15; TESTS=tests for all)
	@TEST_POSTGRES=15 BROWSER=none exec $(PY) -m pytest -n 2 --dist worksteal $(or $(TESTS),$(DATABASE_TESTS)) $(ARGS)

test-rabbitmq: dev  ## Run the worker tests on RabbitMQ (package rabbitmq-server; MATRIX= for every kind of tool)
	@TEST_BROKER=rabbitmq MATRIX=$(MATRIX) BROWSER=none exec $(PY) -m pytest -n 2 --dist worksteal \
		$(or $(TESTS),$(WORKER_TESTS)) $(ARGS)

matrix: dev  ## Kill a worker at every point, with every kind of tool and every outcome; try hundreds of lives
	@MATRIX=all STATEFUL_EXAMPLES=$(or $(STATEFUL_EXAMPLES),300) exec $(PY) -m pytest tests/matrix tests/runs/test_stateful.py $(ARGS)

check: dev  ## Run every static check
	@exec bin/check

smoke: base  ## Play the whole story without a person, on a fresh installation of its own
	@HANDOFF_HOME=.handoff/smoke exec $(PY) manage.py up --fresh --demo --port 8200 --then smoke

bench: base  ## Measure one durable step, and say whether it is fast enough
	@HANDOFF_HOME=.handoff/bench HANDOFF_AGENTS=evals.agent:STEADY,evals.revalidation:CAREFUL,evals.orphan_agent:ORPHANED exec $(PY) manage.py up --fresh --servers --then "bench $(ARGS)"

gates: base  ## Ask the launch gates, of a fresh installation and its database too
	@HANDOFF_HOME=.handoff/gates exec $(PY) manage.py up --fresh --servers --then "check --tag gates"

logs:  ## Follow the log files of the running installation
	@ls .handoff/log/*.log >/dev/null 2>&1 || { echo "No logs yet: start something first, as make demo."; exit 1; }
	@exec tail -n 20 -F .handoff/log/*.log

demo-reset: base  ## Drop the demo's data, and nothing else
	@exec $(PY) manage.py demo_reset

lock: dev  ## Resolve the dependencies anew (needs uv)
	@exec $(PY) bin/lock.py

catalogues: dev  ## Collect the sentences that people read
	@exec $(PY) bin/catalogues.py

format: dev  ## Bring the code into its form
	@$(PY) -m ruff check --fix --quiet . ; $(PY) -m ruff format .

clean:  ## Remove all that make made, the demo's data too
	@if [ -x $(PY) ]; then $(PY) manage.py ctl down >/dev/null 2>&1 || true; fi
	@rm -rf .venv .handoff .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles
	@find . -name __pycache__ -prune -exec rm -rf {} +
	@echo "Removed .venv, .handoff and the caches."
