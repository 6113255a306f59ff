# The two commands a newcomer needs: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# what `eval-gate init` writes
STARTER := $(wildcard runner/eval_gate/cli/starter/files/*.yml)

.PHONY: git help demo test lint format types check lock schemas action conformance interop tools agents pages audit bench beside fuzz clean

help:  ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/runtime  ## run the main job on bundled evals against a bundled local agent
	@$(BIN)/python -m runner demo

test: git $(VENV)/dev  ## run the tests
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: $(VENV)/dev  ## style, import rules, workflows, Dockerfile
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/actionlint .github/workflows/*.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/zizmor --offline --quiet .github action.yml host/action.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows \
	  .github/workflows/*.yml $(wildcard examples/workflows/*.yml) $(STARTER)
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml host/action.yml
	@$(BIN)/hadolint Dockerfile

types: $(VENV)/dev  ## strict type checking
	@$(BIN)/mypy

check: lint types test  ## everything CI checks

format: $(VENV)/dev  ## put the code in its one format
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

schemas: $(VENV)/dev  ## write schemas/ anew from the models
	@$(BIN)/python -m tests.support.write_schemas

action: $(VENV)/dev  ## write both action.yml and the tables of docs/action.md anew
	@$(BIN)/python -m tests.support.write_action

conformance: $(VENV)/dev  ## write docs/conformance.md anew from the rules and the tests that hold them
	@$(BIN)/python -m tests.support.conformance

interop: $(VENV)/dev  ## test against GitHub's own artifact client, a stand-in for model providers, an MCP server (needs node)
	@cd tests/interop/artifact && npm ci --silent
	@cd tests/interop/models && npm ci --silent
	@cd tests/interop/mcp && npm ci --silent
	@EVAL_GATE_REQUIRE_INTEROP=1 $(BIN)/python -m pytest tests/interop

tools: $(VENV)/dev  ## test with other people's eval tools, really run: TOOLS=vitest,promptfoo for some (needs npm, the network, GBs)
	@EVAL_GATE_TOOLS=$${TOOLS:-all} EVAL_GATE_REQUIRE_TOOLS=1 $(BIN)/python -m pytest -rs tests/tools $(ARGS)

agents: $(VENV)/dev  ## test with servers of agent frameworks, really run: AGENTS=asgi,langgraph for some (needs npm, the network)
	@EVAL_GATE_AGENTS=$${AGENTS:-all} EVAL_GATE_REQUIRE_AGENTS=1 $(BIN)/python -m pytest -rs tests/agents $(ARGS)

pages: $(VENV)/dev  ## test the page of a run in Chromium (needs that and node)
	@cd tests/pages/library && npm ci --silent
	@EVAL_GATE_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -n auto --dist loadfile tests/pages $(ARGS)

audit: $(VENV)/audit  ## ask for known weaknesses of the locked dependencies (needs the network)
	@$(VENV)/audit/bin/pip-audit --require-hashes --disable-pip --strict -r requirements/runtime.txt -r requirements/dev.txt

beside: $(VENV)/dev  ## measure a run beside bare HTTP clients; ARGS=--check fails where it has become worse by a third
	@$(BIN)/python -m benchmarks.beside $(ARGS)

bench: $(VENV)/dev  ## measure start-up, cost per case, scale; prints a table beside the floors
	@$(BIN)/python benchmarks/run.py $(ARGS)

fuzz: $(VENV)/dev  ## fuzz everything that reads foreign text, a minute for each surface
	@$(PIP) install 'atheris>=2.3'
	@$(BIN)/python -m tests.fuzz.run $(ARGS)

# Locks are universal (every platform, Python 3.11 and later), carry hashes and name no index.
lock: $(VENV)/dev  ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --custom-compile-command 'make lock' --all-extras pyproject.toml -o requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --custom-compile-command 'make lock' --extra github pyproject.toml -c requirements/runtime.txt -o requirements/http.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --custom-compile-command 'make lock' --all-extras pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt

# In a venv of its own: what looks at the locks is no part of them.
$(VENV)/audit: | $(VENV)/made
	@$(PYTHON) -m venv $@
	@$@/bin/python -m pip --disable-pip-version-check --quiet install pip-audit==2.10.1

clean:  ## remove everything that was made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Said at once: some tests make a repository of their own.
git:
	@command -v git >/dev/null || \
	  { echo "The tests need git, which is not installed here (Debian, Ubuntu: apt-get install git)." >&2; exit 1; }

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Eval Gate needs Python 3.11 or later; say which one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make environments here: its module venv is not whole (Debian, Ubuntu: apt-get install" \
	  "$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))." >&2; exit 1; }
	@echo "setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/runtime: requirements/runtime.txt | $(VENV)/made
	@$(PIP) install --require-hashes -r requirements/runtime.txt
	@touch $@

$(VENV)/dev: requirements/dev.txt pyproject.toml | $(VENV)/made
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/runtime
