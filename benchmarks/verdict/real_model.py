"""The verdict over a real model that answers by chance: how often it is red for nothing, and finds a worse prompt.

    python benchmarks/verdict/real_model.py http://127.0.0.1:8080/v1 --model smollm2 --to FOLDER

The three agents of `model_agents.py` answer over HTTP from this process, and ask whatever speaks OpenAI's API; a small
model on this machine does. The branch is run so often, then as many pull requests that change nothing, then some whose
prompt is worse. Every run is `eval-gate run` in a process of its own, as a person would start it: the branch's runs
into one folder, each compared with the one before, the pull requests' into another. What is there already is not run
again, so an interrupted benchmark goes on.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from model_agents import CASES, Case, Model, expected_words, respond


@dataclass(frozen=True)
class Ended:
    """What became of one run: its exit code, its pass rate, cases run again, and its seconds."""

    name: str
    code: int
    passed: int
    regressions: tuple[str, ...]
    reruns: int
    seconds: float


class Agents(ThreadingHTTPServer):
    """The three agents behind one address, which is the same whatever their prompt is."""

    def __init__(self, port: int, model: tuple[str, str], temperature: float) -> None:
        """Answer at a port of this machine, with a model by its address and name."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.model, self.temperature, self.prompt = model, temperature, "good"
        self.cases = {case.question: case for case in CASES}


class _Handler(BaseHTTPRequestHandler):
    server: Agents
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        case = self.server.cases[asked["message"]]
        status, answer = HTTPStatus.OK, dict[str, object]()
        try:
            said = respond(Model(*self.server.model), case, self.server.prompt, self.server.temperature)
            calls = [] if said.call is None else [{"name": case.agent, "params": {"about": said.call}}]
            answer = {"response": said.text, "toolCalls": calls}
        except (OSError, http.client.HTTPException) as problem:
            status, answer = HTTPStatus.BAD_GATEWAY, {"error": str(problem)}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="where the model is asked, as in http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="smollm2", help="its name there")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where everything is kept")
    parser.add_argument("--history", type=int, default=10, help="runs of the branch")
    parser.add_argument("--unchanged", type=int, default=30, help="pull requests that change nothing")
    parser.add_argument("--worse", type=int, default=10, help="pull requests whose prompt is worse")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--each", type=int, default=1, metavar="N", help="take every Nth case only")
    parser.add_argument("--port", type=int, default=8139, help="where the agents answer, the same for each start")
    given = parser.parse_args(arguments)
    folder: Path = given.to
    cases = CASES[:: given.each]
    _write(folder, cases, given.port)
    with Agents(given.port, (given.address, given.model), given.temperature) as agents:
        threading.Thread(target=agents.serve_forever, daemon=True).start()
        branch = [_run(folder, "main", number) for number in range(given.history)]
        same = [_run(folder, "same", number) for number in range(given.unchanged)]
        agents.prompt = "worse"
        worse = [_run(folder, "worse", number) for number in range(given.worse)]
        agents.shutdown()
    for what, runs in (("main", branch), ("unchanged", same), ("a worse prompt", worse)):
        _say(what, runs, len(cases))
    return 0


def _write(folder: Path, cases: Sequence[Case], port: int) -> None:
    """Write the evals, and a configuration of the agents."""
    (folder / "evals").mkdir(parents=True, exist_ok=True)
    written = []
    for case in cases:
        expect: dict[str, object] = {"responseContainsAny": [list(expected_words(case))]}
        if case.about:
            expect["toolsCalled"] = [case.agent]
            about = {"tool": case.agent, "paramName": "about", "assertion": "equals", "value": case.about}
            expect["toolParams"] = [about]
        written.append({"id": f"gs-{case.id}", "input": {"message": case.question}, "expect": expect})
    (folder / "evals" / "agents.golden.json").write_text(json.dumps(written, indent=1))
    target = {"name": "agents", "provider": "http", "url": f"http://127.0.0.1:{port}/chat", "workers": 1}
    (folder / "agents.json").write_text(json.dumps({"targets": [target], "target": "agents"}))


def _run(folder: Path, kind: str, number: int) -> Ended:
    """One run of all cases, as a person starts it; or what is known of it, where it was made before."""
    name = f"{kind}-{number:03}"
    known_as = folder / f"{name}.json"
    begun = time.monotonic()
    if not known_as.is_file():
        runs = folder / kind
        before = set(runs.glob("*"))
        command = [sys.executable, "-m", "runner", "run", "--config", "agents.json", "--output-dir", kind]
        command += ["--reruns", "6", "--max-errors", "1000"]
        if kind == "main":  # what is on the branch is there, whatever its gate says
            command += ["--fail-on", "never", *(["--baseline", "latest"] if number else [])]
        else:
            command += ["--fail-on", "regressions", "--baseline", "main", "--history", "main"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=_environment())
        made = [one for one in runs.glob("*") if one not in before and (one / "run.json").is_file()]
        if len(made) != 1:
            raise SystemExit(f"{name}: no run was made (exit code {done.returncode})\n{done.stderr}")
        result = json.loads((made[0] / "run.json").read_text())
        cases = [case for suite in result["suites"] for case in suite["cases"]]
        changes = (result.get("comparison") or {}).get("changes", [])
        known = {
            "code": done.returncode,
            "passed": sum(case["passed"] for case in cases),
            "regressions": [one["caseId"] for one in changes if one["change"] == "regression"],
            "reruns": sum(case.get("reruns", 0) for case in cases),
            "seconds": round(time.monotonic() - begun, 1),
        }
        known_as.write_text(json.dumps(known))
    known = json.loads(known_as.read_text())
    ended = Ended(name, known["code"], known["passed"], tuple(known["regressions"]), known["reruns"], known["seconds"])
    print(
        f"{name}: exit {ended.code}, {ended.passed} cases pass, {ended.reruns} re-runs,"
        f" {ended.seconds} s {' '.join(ended.regressions)}",
        flush=True,
    )
    return ended


def _say(what: str, runs: Sequence[Ended], cases: int) -> None:
    codes = {code: sum(run.code == code for run in runs) for code in sorted({run.code for run in runs})}
    passed = sum(run.passed for run in runs) / max(len(runs), 1) / cases
    executions = 1 + sum(run.reruns for run in runs) / max(len(runs), 1) / cases
    print(f"{what}: {len(runs)} runs, exit codes {codes}, {passed:.1%} pass, {executions:.2f} executions a case")


def _environment() -> dict[str, str]:
    """Return the environment of this process, with the program from this checkout."""
    import os

    root = Path(__file__).resolve().parents[2]
    return os.environ | {"PYTHONPATH": str(root)}


if __name__ == "__main__":
    raise SystemExit(main())
