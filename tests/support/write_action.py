"""Writes both action.yml and the tables of docs/action-inputs.md from the one table of inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eval_gate.action.inputs import INPUTS, OUTPUTS, ActionInput

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
HOST = ROOT / "host" / "action.yml"
PAGE = ROOT / "docs" / "action-inputs.md"
HEAD = """\
# Made from runner/eval_gate/action/inputs.py by `make action`; a test holds it to that table.
name: Eval Gate
description: >-
  Runs your LLM agent's evals on a pull request, compares them with the default branch, and says in one comment which
  cases regressed, which newly pass and which evals are stale.
author: Eval Gate
branding:
  icon: shield
  color: green
"""
HOST_HEAD = """\
# Made from runner/eval_gate/action/inputs.py by `make action`; a test holds it to that table.
name: Eval Gate on the machine of the job
description: >-
  The same as Eval Gate, without Docker: for macOS and Windows, and for evals that need what is installed on the runner.
author: Eval Gate
"""
RUNS = """\
runs:
  using: docker
  image: Dockerfile
"""
HOST_RUNS = """\
runs:
  using: node24
  main: start.mjs
"""


def action_yml() -> str:
    """The action in a container: the whole file."""
    return _action(HEAD, [one for one in INPUTS if not one.host_only], RUNS)


def host_action_yml() -> str:
    """The action on the machine of the job."""
    return _action(HOST_HEAD, INPUTS, HOST_RUNS)


def _action(head: str, inputs: Sequence[ActionInput], runs: str) -> str:
    lines = [head, "inputs:\n"]
    for one in inputs:
        lines.append(f"  {one.name}:\n    description: {_quoted(one.description)}\n    required: false\n")
        lines.append(f"    default: {_quoted(one.default)}\n")
    lines.append("outputs:\n")
    lines += [f"  {one.name}:\n    description: {_quoted(one.description)}\n" for one in OUTPUTS]
    return "".join([*lines, runs])


def tables() -> dict[str, str]:
    """The tables of the page by the name of their place in it."""
    inputs = ["| input | default | meaning |\n|:--|:--|:--|\n"]
    inputs += [f"| `{one.name}` | {_code(one.default)} | {_cell(_described(one))} |\n" for one in INPUTS]
    outputs = ["| output | meaning |\n|:--|:--|\n"]
    outputs += [f"| `{one.name}` | {_cell(one.description)} |\n" for one in OUTPUTS]
    return {"inputs": "".join(inputs), "outputs": "".join(outputs)}


def page(text: str) -> str:
    """The page with its tables as they should be."""
    for name, table in tables().items():
        begin, end = f"<!-- {name}: made by `make action` -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _described(one: ActionInput) -> str:
    return f"Only [without Docker](action.md#without-docker): {one.description}" if one.host_only else one.description


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    ACTION.write_text(action_yml(), encoding="utf-8")
    HOST.write_text(host_action_yml(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
