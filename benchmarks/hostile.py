"""What one megabyte of hostile input costs: every reader and renderer against every shape of too much.

`python benchmarks/hostile.py` prints the worst of each reader as a table (processor seconds, megabytes above idle).
`--all` prints every row, `--size BYTES` makes the inputs larger, a name chooses readers: `… hostile.py config targets`.

A valid file of each kind is taken, and each of its values is replaced by each filler in turn. Every row is measured in
a process of its own, forked from one that has loaded everything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import json
import os
import pickle
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec

from eval_gate.cli.terminal.console import print_error
from eval_gate.config.loader import load_config
from eval_gate.engine.journal import TrialRecord, read_lines
from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import find_eval_files, load_suites
from eval_gate.gate.waivers.waiver_file import parse_waivers
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.results.history import parse_history
from eval_gate.results.run_reader import read_run
from eval_gate.staleness.registry_loader import load_registry
from eval_gate.targets.model.recording import read_recording
from eval_gate.targets.target_list import read_targets

MEGA = 990_000
MOST_S, MOST_MB = 2.0, 150.0
Path_ = tuple[str | int, ...]


def many(value: str, size: int) -> str:
    """Repeat `value` with commas in between, up to about `size` characters.

    A `#` in `value` becomes a number that is different in each copy.
    """
    if "#" not in value:
        return ",".join([value] * (size // (len(value) + 1)))
    found, length = [], 0
    while length < size:
        found.append(value.replace("#", str(len(found))))
        length += len(found[-1]) + 1
    return ",".join(found)


def listed(value: str) -> Callable[[int], str]:
    """Return a function that builds a JSON list of copies of `value` of a given size."""
    return lambda size: "[" + many(value, size) + "]"


def mapped(value: str) -> Callable[[int], str]:
    """Return a function that builds a JSON object of copies of `value` of a given size."""
    return lambda size: "{" + many(value, size) + "}"


FILLERS: dict[str, Callable[[int], str]] = {
    "a list of numbers": listed("1"),
    "a list of lists": listed("[]"),
    "a list of mappings": listed("{}"),
    "a list of texts": listed('"a"'),
    "a list of different texts": listed('"t#"'),
    "a list of nearly right mappings": listed('{"name":"a#","typ":"x"}'),
    "a mapping of many keys": mapped('"k#":1'),
    "a mapping of nearly right keys": mapped('"timeoutMs#":1'),
    "a mapping of one key": mapped('"k":1'),
    "lists in lists": listed("[" * 150 + "]" * 150),
    "mappings in mappings": listed('{"properties":' * 90 + "{}" + "}" * 90),
    "too deep": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "a long text": lambda size: json.dumps("a " * (size // 2)),
    "a text of lines": lambda size: json.dumps("\n" * (size // 2)),
    "a text of brackets": lambda size: json.dumps("[({" * (size // 3)),
    "a long number": lambda size: "1" * size,
}
HOLE = "\x01hole\x01"

CASE = {
    "id": "gs-1",
    "description": "d",
    "difficulty": "easy",
    "tags": ["t"],
    "createdAt": "2026-01-01",
    "bugRef": "b",
    "input": {"message": "ask"},
    "expect": {
        "toolsAcceptable": [["a"]],
        "toolsNotCalled": ["b"],
        "toolParams": [{"tool": "a", "paramName": "p", "assertion": "equals", "value": 1}],
        "responseContains": ["ok"],
        "responseContainsAny": [["ok"]],
        "responseNotContains": ["no"],
        "responseMatches": ["ok"],
        "maxLatencyMs": 5,
    },
    "stubs": {"a": 1},
    "rubric": [{"dimension": "d", "maxScore": 5, "criteria": "c"}],
    "referenceData": {"a": 1},
}
SUITE = {"metadata": {"toolName": "t", "toolVersion": "1"}, "cases": [CASE]}
AGENT_SUITE = {
    "name": "n",
    "version": "1",
    "agent": {"name": "a", "model": "gpt-4o", "instructions": "i", "tools": ["readFile"]},
    "defaults": {"timeout": 5},
    "cases": [
        {
            "id": "a",
            "name": "n",
            "prompt": "p",
            "tags": ["t"],
            "assertions": [
                {"type": "contains", "value": "x"},
                {"type": "matchesRegex", "pattern": "x"},
                {"type": "jsonPath", "path": "a.b", "expected": 1},
            ],
        }
    ],
}
AGENTV = {
    "description": "d",
    "dataset": "n",
    "execution": {"target": "it", "evaluators": [{"name": "e", "type": "llm_judge", "prompt": "p"}]},
    "evalcases": [
        {
            "id": "a",
            "expected_outcome": "o",
            "conversation_id": "c",
            "note": "n",
            "rubrics": ["r"],
            "input_messages": [{"role": "user", "content": [{"type": "text", "value": "v"}]}],
            "expected_messages": [
                {"role": "assistant", "content": "c", "tool_calls": [{"tool": "t", "input": {"a": 1}}]}
            ],
        }
    ],
}
CONFIG = {
    "evals": ["evals"],
    "target": "it",
    "targets": [{"name": "it", "provider": "mock"}],
    "failOn": ["failures"],
    "reports": ["md=x.md"],
    "mustPass": ["a"],
    "timeoutMs": 5,
}
TARGETS = {
    "targets": [
        {
            "name": "default",
            "provider": "http",
            "url": "http://127.0.0.1:1",
            "headers": {"a": "b"},
            "requestTemplate": {"a": "{{message}}"},
        },
        {"name": "b", "provider": "cli", "command_template": "echo"},
    ]
}
REGISTRY = {
    "tools": [
        {
            "name": "a",
            "description": "d",
            "version": "1",
            "status": "s",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
        }
    ]
}
WAIVERS = {
    "waivers": [{"case": "a", "suite": "s", "reason": "r", "until": "2026-12-01", "owner": "b"}],
    "quarantine": [],
}
LEDGER = {
    "schemaVersion": 1,
    "runs": [{"runId": "r", "timestamp": "t", "cases": 1, "scored": 1}],
    "suites": {"a.json": {"gs-1": {"fingerprints": ["a.b"], "runs": "0P"}}},
}


def record() -> dict[str, Any]:
    """Build a run result as the program writes it, decoded from JSON."""
    from tests.support.verdicts import make_judged

    return json.loads(msgspec.json.encode(make_judged({"gs-1": "FFF"}, {"gs-1": "PPPPPP"})).decode())


def _config(folder: Path, text: str, name: str) -> None:
    (folder / name).write_text(text)
    load_config({}, {}, folder / name)


def _targets(folder: Path, text: str) -> None:
    (folder / "targets.yaml").write_text(text)
    read_targets("targets.yaml", folder).resolve_target(None, {})


def _evals(folder: Path, text: str, name: str) -> None:
    (folder / name).write_text(text)
    for strict in (False, True):
        load_suites(find_eval_files([name], folder), folder, ReadOptions(strict=strict))


def _registry(folder: Path, text: str, name: str) -> None:
    (folder / name).write_text(text)
    asyncio.run(load_registry(name, folder))


def _stored(folder: Path, text: str) -> None:
    (folder / "run.json").write_text(text)
    run = read_run(str(folder / "run.json"), folder)
    for form in ("md", "html", "junit", "console"):
        render(form, run, ReportContext())


def many_cases(size: int, kind: str) -> str:
    """Build a stored run result that has only valid cases, as JSON of about `size` characters.

    `kind` is one of `VALID`.
    """
    document = record()
    (suite,) = document["suites"]
    (case,), (change,) = suite["cases"], document["comparison"]["changes"]
    if kind in {"shortest cases", "suites of one case"}:
        case = {"id": "", "passed": False, "status": "failed"}
    if kind == "cases full of signs":
        case |= {"error": "[a](b) <i>@all</i> `c` | ##[d] " * 8, "description": "*_~" * 30, "tags": ["|`<"] * 9}
    changed = kind == "regressions"
    suite["cases"], document["comparison"]["changes"] = [], []
    suites = []
    length, number = len(json.dumps(document)), 0
    while length < size:
        number += 1
        made = [case | {"id": f"c{number}"}]
        length += len(json.dumps(made[0]))
        if kind == "suites of one case":
            short = {name: suite[name] for name in ("runId", "timestamp", "tier", "toolName")}
            suites.append(short | {"evalFile": f"e{number}.json", "cases": made})
            length += len(json.dumps(suites[-1])) - len(json.dumps(made[0]))
        else:
            suite["cases"] += made
        if changed:
            document["comparison"]["changes"].append(change | {"caseId": f"c{number}"})
            length += len(json.dumps(document["comparison"]["changes"][-1]))
    document["suites"] = suites or [suite]
    return json.dumps(document)


VALID = ("cases as we write them", "shortest cases", "suites of one case", "regressions", "cases full of signs")
FORMS: dict[str, Callable[[RunResult], object]] = {
    "comment": lambda run: render("md", run, ReportContext()),
    "summary": lambda run: render_summary(build_view(run, ReportContext())),
    "check": lambda run: _check(build_view(run, ReportContext())),
    **{form: partial(render, form, context=ReportContext()) for form in ("html", "junit", "console", "json", "agentv")},
}


def _check(view: ReportView) -> object:
    return render_check_run(view), build_annotations(view)


def _rendered(form: str, folder: Path, text: str) -> None:
    (folder / "run.json").write_text(text)
    FORMS[form](read_run(str(folder / "run.json"), folder))


def _journal(folder: Path, text: str) -> None:
    (folder / "cases.jsonl").write_text(text + "\n")
    list(read_lines(folder / "cases.jsonl"))


def _recording(folder: Path, text: str) -> None:
    (folder / "recording.jsonl").write_text(text + "\n")
    read_recording(folder / "recording.jsonl")


READERS: dict[str, tuple[Callable[[], Any], Callable[[Path, str], None]]] = {
    "config json": (lambda: CONFIG, lambda folder, text: _config(folder, text, "eval-gate.json")),
    "config yaml": (lambda: CONFIG, lambda folder, text: _config(folder, text, "eval-gate.yaml")),
    "targets": (lambda: TARGETS, _targets),
    "tool-forge": (lambda: SUITE, lambda folder, text: _evals(folder, text, "a.golden.json")),
    "tool-forge regression": (lambda: SUITE, lambda folder, text: _evals(folder, text, "a.regression.json")),
    "agent-evals": (lambda: AGENT_SUITE, lambda folder, text: _evals(folder, text, "a.json")),
    "agentv yaml": (lambda: AGENTV, lambda folder, text: _evals(folder, text, "a.yaml")),
    "agentv json": (lambda: AGENTV, lambda folder, text: _evals(folder, text, "a.json")),
    "agentv jsonl": (lambda: AGENTV["evalcases"][0], lambda folder, text: _evals(folder, text, "a.jsonl")),
    "registry json": (lambda: REGISTRY, lambda folder, text: _registry(folder, text, "tools.json")),
    "registry typescript": (
        lambda: REGISTRY["tools"],
        lambda folder, text: _registry(folder, f"export const tools = {text};", "tools.ts"),
    ),
    "waivers": (lambda: WAIVERS, lambda _, text: print(parse_waivers(text.encode(), date(2026, 11, 22), shown_as="w"))),
    "ledger": (lambda: LEDGER, lambda _, text: print(parse_history(text.encode(), "ledger"))),
    "stored result": (record, _stored),
    "journal": (
        lambda: json.loads(
            msgspec.json.encode(
                TrialRecord(eval_file="a", case_id="b", trial=0, fingerprint="f", status=Status.PASSED)
            ).decode()
        ),
        _journal,
    ),
    "recording": (lambda: {"key": "k", "turn": {"text": "a", "calls": []}}, _recording),
}


def holes(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place in a document, itself among them."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from holes(member, (*path, key))


def with_hole(value: Any, path: Path_) -> str:
    """Return the document as JSON with the placeholder `HOLE` at this path."""
    if not path:
        return json.dumps(HOLE)
    changed = copy.deepcopy(value)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = HOLE
    return json.dumps(changed)


def measured(work: Callable[[Path, str], None], text: str) -> tuple[float, float, str]:
    """Processor seconds, megabytes above idle, and how it ended, of a child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        said = "read"
        with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
            os.chdir(folder)
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                Path("/proc/self/clear_refs").write_text("5")
                idle, begun = _peak(), _computed()
                try:
                    work(Path(folder), text)
                except GateError as error:
                    said = error.code
                    print_error(error)
                except BaseException as error:  # noqa: BLE001 (what it was is the row)
                    said = f"!! {type(error).__name__}: {str(error)[:100]}"
                found = (_computed() - begun, _peak() - idle, said)
        os.write(write_end, pickle.dumps(found))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else (float("inf"), float("inf"), "!! the process ended")


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def rows(reader: str, size: int) -> Iterator[tuple[float, float, str, str]]:
    """Every filler at every place; of a form every kind of valid result, read and rendered."""
    if form := reader.removeprefix("stored, valid: ") if reader.startswith("stored, valid: ") else None:
        FORMS[form](msgspec.convert(record(), RunResult))  # so that its templates are loaded
        for kind in VALID:
            seconds, peak, said = measured(partial(_rendered, form), many_cases(size, kind))
            yield seconds, peak, kind, said
        return
    make, work = READERS[reader]
    document = make()
    for path in holes(document):
        template = with_hole(document, path)
        for name, filler in FILLERS.items():
            text = template.replace(json.dumps(HOLE), filler(size))
            seconds, peak, said = measured(work, text)
            where = ".".join(map(str, path)) or "the whole"
            yield seconds, peak, f"{where}: {name}", said


def main() -> int:
    """Print the table; 1 where a row is beyond what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", help=f"of {', '.join(READERS)}, stored, valid")
    parser.add_argument("--size", type=int, default=MEGA)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--beyond", action="store_true", help="every row that is beyond what is promised")
    asked = parser.parse_args()
    worst = 0.0
    print("| reader | slowest input | seconds | said | largest input | MB above idle |")
    print("|:--|:--|--:|:--|:--|--:|")
    for reader in (*READERS, *(f"stored, valid: {form}" for form in FORMS)):
        if asked.readers and not any(one in reader for one in asked.readers):
            continue
        found = list(rows(reader, asked.size))
        for row in sorted(found, reverse=True):
            beyond = row[0] > MOST_S or row[1] > MOST_MB or row[3].startswith("!!")
            if asked.all or (asked.beyond and beyond):
                print(f"  {reader} {row[2]}: {row[0]:.2f} s, {row[1]:.0f} MB, {row[3]}", flush=True)
        slow, large = max(found), max(found, key=lambda row: row[1])
        print(f"| {reader} | {slow[2]} | {slow[0]:.2f} | {slow[3]} | {large[2]} | {large[1]:.0f} |", flush=True)
        worst = max(worst, slow[0] / MOST_S, large[1] / MOST_MB)
    return int(worst > 1)


if __name__ == "__main__":
    sys.exit(main())
