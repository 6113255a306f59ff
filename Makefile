# The two commands a newcomer needs: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# --no-compile: modules are compiled when they are first imported, and most of a lock never is
INSTALL := $(BIN)/python requirements/install.py
# where it is set, each worker compiles all tests anew, half a minute's work, and each program all of its modules
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# what `eval-gate init` writes
STARTER := $(wildcard runner/eval_gate/cli/starter/files/*.yml)

.PHONY: git help demo test test-full lint format types check lock schemas action conformance interop tools agents pages audit bench beside size fuzz clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/runtime  ## run the main job on bundled evals against a bundled local agent
	@$(BIN)/python -m runner demo

test: git $(VENV)/dev  ## run the fast tier of the tests: 5 to 6 minutes on two cores; ends with processor seconds by package
	@$(PYTEST) $(ARGS)

test-full: git $(VENV)/dev  ## run every test, also those that need npm, Docker or Chromium: 20 to 25 minutes
	@$(PYTEST) --full $(ARGS)
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory interop; \
	  else printf '\n*** NOT TESTED against programs of others: there is no npm here. ***\n\n' >&2; fi
	@$(MAKE) --no-print-directory tools TOOLS=own-results,pytest
	@.ci/host
	@.ci/bare
	@.ci/container --full
	@.ci/pages

lint: $(VENV)/dev  ## style, import rules, workflows, Dockerfile, subjects of new commits
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/actionlint .github/workflows/*.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/zizmor --offline --quiet .github action.yml host/action.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows \
	  .github/workflows/*.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml host/action.yml
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/python -m tests.support.commit_subjects
	@$(BIN)/python -m tests.support.check_words

types: $(VENV)/dev  ## strict type checking
	@$(BIN)/mypy

check: lint types test  ## style, types and the fast tier: what a change has to pass first

format: $(VENV)/dev  ## put the code in its one format
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

schemas: $(VENV)/dev  ## write schemas/ anew from the models
	@$(BIN)/python -m tests.support.write_schemas

action: $(VENV)/dev  ## write both action.yml, the tables of docs/action-inputs.md, and the ref after `@` everywhere
	@$(BIN)/python -m tests.support.write_action
	@$(BIN)/python -m tests.support.write_refs

conformance: $(VENV)/dev  ## write tests/contract/conformance.md anew from the rules and the tests that hold them
	@$(BIN)/python -m tests.support.conformance

interop: $(VENV)/dev  ## test against GitHub's own artifact client, a stand-in for model providers, an MCP server, an S3 server (needs node)
	@cd tests/interop/artifact && npm ci --silent
	@cd tests/interop/models && npm ci --silent
	@cd tests/interop/mcp && npm ci --silent
	@EVAL_GATE_REQUIRE_INTEROP=1 $(BIN)/python -m pytest --full tests/interop

tools: $(VENV)/dev  ## test with other people's eval tools, really run: TOOLS=vitest,promptfoo for some (needs npm, the network, GBs)
	@EVAL_GATE_TOOLS=$${TOOLS:-all} EVAL_GATE_REQUIRE_TOOLS=1 $(BIN)/python -m pytest --full -rs tests/tools $(ARGS)

agents: $(VENV)/dev  ## test with servers of agent frameworks, really run: AGENTS=asgi,langgraph for some (needs npm, the network)
	@EVAL_GATE_AGENTS=$${AGENTS:-all} EVAL_GATE_REQUIRE_AGENTS=1 $(BIN)/python -m pytest --full -rs tests/agents $(ARGS)

pages: $(VENV)/dev  ## test the page of a run in Chromium (needs that and node)
	@cd tests/pages/library && npm ci --silent
	@EVAL_GATE_REQUIRE_BROWSER=1 $(BIN)/python -m pytest --full -n auto --dist loadfile tests/pages $(ARGS)

audit: $(VENV)/audit  ## ask for known weaknesses of the locked dependencies (needs the network)
	@$(VENV)/audit/bin/pip-audit --require-hashes --disable-pip --strict -r requirements/runtime.txt -r requirements/dev.txt

beside: $(VENV)/dev  ## measure a run beside bare HTTP clients; ARGS=--check fails where it has become worse by a third
	@$(BIN)/python -m benchmarks.beside $(ARGS)

size: $(VENV)/dev  ## count lines by package, settings and more; ARGS=--check fails above the budget of lines
	@$(BIN)/python -m benchmarks.size $(ARGS)

bench: $(VENV)/dev  ## measure start-up, cost per case, scale; prints a table beside the floors
	@$(BIN)/python benchmarks/run.py $(ARGS)

fuzz: $(VENV)/dev  ## fuzz everything that reads foreign text, a minute for each surface
	@$(INSTALL) requirements/fuzz.txt --no-compile
	@$(BIN)/python -m tests.fuzz.run $(ARGS)

# Locks are universal (every platform, Python 3.11 and later), complete (with the extras that packages ask of each other),
# carry hashes and name no index. requirements/install.py installs them.
COMPILE = $(BIN)/uv pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --custom-compile-command 'make lock'
lock: $(VENV)/dev  ## resolve the dependencies anew
	@$(COMPILE) --all-extras pyproject.toml -o requirements/runtime.txt
	@$(COMPILE) --extra github pyproject.toml -c requirements/runtime.txt -o requirements/http.txt
	@$(COMPILE) --all-extras pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt
	@$(COMPILE) --group audit -o requirements/audit.txt
	@$(COMPILE) --group fuzz -o requirements/fuzz.txt
	@echo pip | $(COMPILE) - -o requirements/pips/newest.txt

# In a venv of its own: what looks at the locks is no part of them.
$(VENV)/audit: requirements/audit.txt $(VENV)/made
	@$(PYTHON) -m venv --clear $@
	@$@/bin/python requirements/install.py $<

clean:  ## remove everything that was made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Said at once: some tests make a repository of their own.
git:
	@command -v git >/dev/null || \
	  { echo "The tests need git, which is not installed here (Debian, Ubuntu: apt-get install git)." >&2; exit 1; }

# A lock that changed gets a new environment: nothing of an older one is left in it.
$(VENV)/made: requirements/runtime.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Eval Gate needs Python 3.11 or later; say which one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make environments here: its module venv is not whole (Debian, Ubuntu: apt-get install" \
	  "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))." >&2; exit 1; }
	@echo "setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/runtime: $(VENV)/made
	@$(INSTALL) requirements/runtime.txt --no-compile
	@touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml
	@$(INSTALL) requirements/dev.txt --no-compile
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@for lock in requirements/pips/*.txt; do \
	  $(PIP) download --no-deps --require-hashes --only-binary :all: -r $$lock \
	    --dest $(VENV)/pips/$$(basename $$lock .txt) || exit 1; done
	@$(BIN)/python -m pip check > $(VENV)/check || { cat $(VENV)/check >&2; exit 1; }
	@touch $@ $(VENV)/runtime
