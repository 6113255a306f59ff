"""Everything a change can bend in how it is measured, with the installed program: it is said, and can be made to block.

Every bend here turns a red gate green, or could; the agent stays what it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent

TITLE = "evaluation setup changed since the baseline:"
CONFIG: dict[str, object] = {"failOn": ["regressions"], "mustPass": ["gs-000"]}
SNAPSHOT = "python3 now.py"


async def answer(exchange: Exchange) -> None:
    exchange.answer({"response": "ok, 7 of 9", "toolCalls": []})


@dataclass
class Project:
    """A repository with four cases and everything that can be bent about them."""

    folder: Path
    url: str

    def __post_init__(self) -> None:
        expect = [["ok"], ["{{seed:seven}}"], ["{{snapshot:nine}}"], ["ok"]]
        self.cases = [
            {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": values}}
            for number, values in enumerate(expect)
        ]
        self.write_cases()
        self.write("eval-gate.json", json.dumps(CONFIG))
        self.write("seed.json", json.dumps({"seven": 7}))
        self.write("now.py", "print('{\"nine\": 9}')\n")
        self.write("again.py", 'print(\'{"nine": "ok"}\')\n')

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def write_cases(self, name: str = "weather.golden.json") -> None:
        self.write(f"evals/{name}", json.dumps(self.cases))

    def configure(self, **settings: object) -> None:
        self.write("eval-gate.json", json.dumps(CONFIG | settings))

    def run(self, *arguments: str, **flags: str):
        given = {"agent-endpoint": self.url, "seed-manifest": "seed.json", "snapshot-command": SNAPSHOT} | flags
        options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
        return gate(self.folder, "run", *options, *arguments)


@pytest.fixture
def project(tmp_path):
    with agent(answer) as running:
        made = Project(tmp_path, running.url)
        done = made.run()
        assert done.returncode == 0, done.stdout + done.stderr
        assert TITLE not in done.stdout
        yield made


def removed(project: Project) -> Mapping[str, str]:
    del project.cases[3]
    project.write_cases()
    return {}


def renamed(project: Project) -> Mapping[str, str]:
    project.cases[3]["id"] = "gs-other"
    project.write_cases()
    return {}


def moved(project: Project) -> Mapping[str, str]:
    (project.folder / "evals/weather.golden.json").rename(project.folder / "evals/forecast.golden.json")
    return {}


def weakened(project: Project) -> Mapping[str, str]:
    project.cases[3]["expect"] = {"responseNonEmpty": True}
    project.write_cases()
    return {}


def without_checks(project: Project) -> Mapping[str, str]:
    project.cases[3]["expect"] = {}
    project.write_cases()
    return {}


def expecting(**expect: object) -> Callable[[Project], Mapping[str, str]]:
    def bend(project: Project) -> Mapping[str, str]:
        project.cases[3]["expect"] = expect
        project.write_cases()
        return {}

    return bend


def asked_otherwise(project: Project) -> Mapping[str, str]:
    project.cases[3]["input"] = {"message": "say 3"}
    project.write_cases()
    return {}


def another_seed(project: Project) -> Mapping[str, str]:
    project.write("seed.json", json.dumps({"seven": "ok"}))
    return {}


def another_snapshot(project: Project) -> Mapping[str, str]:
    return {"snapshot-command": "python3 again.py"}


def another_snapshot_script(project: Project) -> Mapping[str, str]:
    project.write("now.py", 'print(\'{"nine": "ok"}\')\n')
    return {}


def configured(**settings: object) -> Callable[[Project], Mapping[str, str]]:
    def bend(project: Project) -> Mapping[str, str]:
        project.configure(**settings)
        return {}

    return bend


GONE = "1 case that passes in the baseline"
BENDS = {
    "removed": (removed, f"{GONE} was removed: `gs-003`", False),
    "renamed": (renamed, "1 case was renamed and nothing else: `gs-003` → `gs-other`", False),
    "moved": (moved, "4 cases were renamed and nothing else: `gs-000` → `evals/forecast.golden", False),
    "weakened": (weakened, f"{GONE} has a changed expectation: `gs-003`", True),
    "no_checks": (without_checks, f"{GONE} no longer has a check: `gs-003`", True),
    "empty-list": (expecting(responseContains=[]), f"{GONE} no longer has a check: `gs-003`", True),
    "empty-text": (expecting(responseContains=[""]), f"{GONE} no longer has a check: `gs-003`", True),
    "empty-group": (expecting(responseContainsAny=[[]]), f"{GONE} no longer has a check: `gs-003`", True),
    "any-pattern": (expecting(responseMatches=[".*"]), f"{GONE} no longer has a check: `gs-003`", True),
    "asked": (asked_otherwise, f"{GONE} has a changed prompt: `gs-003`", True),
    "seed": (another_seed, "seed values of 1 case changed: `gs-001`", True),
    "snapshot": (
        another_snapshot,
        f"snapshot of 1 case changed: `{SNAPSHOT}` → `python3 again.py`",
        True,
    ),
    "snapshot-script": (another_snapshot_script, "snapshot of 1 case changed: `now.py`", True),
    "never": (configured(failOn=["never"]), "`fail-on` loosened: regressions → never", True),
    "allowed": (configured(allowedRegressions=100), "`allowed-regressions` loosened: 0 → 100", True),
    "pass-score": (configured(passScore=0.01), "`pass-score` loosened: 1 → 0.01", True),
    "errors": (configured(maxErrors=3), "`max-errors` loosened: none → 3", True),
    "must-pass": (configured(mustPass=[]), "`must-pass` loosened: no longer covers `gs-000`", True),
    "reruns": (configured(reruns=3), "`reruns` loosened: 12 → 3", True),
    "stricter": (configured(minPassRate=0.5), "`min-pass-rate` tightened: none → 0.5", False),
    "trials": (configured(trials=2), "`trials` changed: 1 → 2", False),
}


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (None, "regressions", "`fail-on` changed: failures (the default) → regressions"),
        (None, "regressions,changed", "`fail-on` tightened: failures (the default) → changed, regressions"),
        (None, "never", "`fail-on` loosened: failures (the default) → never"),
        (
            "failures",
            "regressions,changed",
            "`fail-on` loosened: failures → changed, regressions",
        ),
        ("failures", "regressions", "`fail-on` loosened: failures → regressions, so a case that also fails in"),
        ("regressions", None, "`fail-on` tightened: regressions → failures (the default)"),
    ],
)
def test_run__what_fails_the_gate_is_said_for_the_first_time__is_no_loosened_rule(tmp_path, then, now, said) -> None:
    write_suite(tmp_path, 2)

    def run(fail_on: str | None):
        given = ("--fail-on", fail_on) if fail_on else ()
        return gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", "latest", *given, CI="true")

    with agent() as running:
        run(then)
        first, second = run(now), run(now)
    loosened = "loosened" in said and "changed" in (now or "")
    assert (first.returncode, second.returncode) == (1 if loosened else 0, 1 if loosened else 0)
    assert said in " ".join(first.stdout.split())
    assert record(tmp_path)["policy"].get("failOnDefault", False) is (now is None)
    assert loosened or "evaluation setup changed" not in second.stdout


@pytest.mark.parametrize("name", BENDS)
def test_run__something_is_measured_differently__is_said_below_the_verdict(project, name) -> None:
    bend, said, _ = BENDS[name]
    done = project.run("--baseline", "evals/results", **bend(project))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    verdict = next(number for number, line in enumerate(lines) if line.startswith("GATE PASSED"))
    assert lines[verdict + 1] == TITLE
    assert f"  · {said}" in "\n".join(lines[verdict + 2 :])
    comment = gate(project.folder, "report", "latest", "--format", "md").stdout
    assert "**Evaluation setup changed since the baseline:**" in comment.partition("<details>")[0]


@pytest.mark.parametrize("name", [name for name in BENDS if name != "never"])  # which stands alone
def test_run__fail_on_changed__blocks_what_weakens_and_nothing_else(project, name) -> None:
    bend, _, blocks = BENDS[name]
    flags = bend(project)
    done = project.run("--baseline", "evals/results", "--fail-on", "regressions,changed", **flags)
    assert done.returncode == (1 if blocks else 0), done.stdout + done.stderr
    assert blocks == ("evaluated differently (limit 0)" in done.stdout or "was loosened (limit 0)" in done.stdout)


def test_run__fail_on_removed__blocks_a_case_that_is_gone(project) -> None:
    removed(project)
    done = project.run("--baseline", "evals/results", "--fail-on", "regressions,removed")
    assert done.returncode == 1
    assert "GATE FAILED: 1 case that passed in the baseline was removed (limit 0)   exit 1" in done.stdout
    rule = {"name": "Removed cases", "value": "1", "limit": "0", "ok": False}
    assert rule in record(project.folder)["verdict"]["rules"]


@pytest.mark.parametrize("bend", [renamed, moved])
def test_run__fail_on_removed__lets_a_case_have_another_name(project, bend) -> None:
    bend(project)
    done = project.run("--baseline", "evals/results", "--fail-on", "regressions,removed")
    assert done.returncode == 0, done.stdout


def test_run__fail_on_removed__some_cases_chosen__the_others_are_not_gone(project) -> None:
    done = project.run("--baseline", "evals/results", "--fail-on", "regressions,removed", "--case", "gs-000")
    assert done.returncode == 0, done.stdout
    assert "was removed" not in done.stdout


def test_run__fail_on_new_failures__blocks_a_new_case_that_fails(project) -> None:
    first = record(project.folder)["runId"]
    project.cases.append(
        {"id": "gs-004", "input": {"message": "ask 4"}, "expect": {"responseContains": ["never said"]}}
    )
    project.write_cases()
    green = project.run("--baseline", first, "--fail-on", "regressions")
    red = project.run("--baseline", first, "--fail-on", "regressions,new-failures")
    assert (green.returncode, red.returncode) == (0, 1)
    assert "GATE FAILED: 1 new or changed case failed (limit 0)   exit 1" in red.stdout


def test_compare__another_policy__is_said_as_in_the_run(project) -> None:
    first = record(project.folder)["runId"]
    project.configure(allowedRegressions=100)
    project.run("--baseline", "evals/results")
    second = record(project.folder)
    assert second["policy"]["allowedRegressions"] == 100
    said = "`allowed-regressions` loosened: 0 → 100"
    assert said in gate(project.folder, "compare", first, second["runId"]).stdout


def test_compare__rule_typed_when_the_run_was_made__is_said_in_ci_only(project) -> None:
    first = record(project.folder)["runId"]
    done = project.run("--baseline", "evals/results", "--allowed-regressions", "100")
    again = ("compare", first, record(project.folder)["runId"])
    assert TITLE not in done.stdout + gate(project.folder, *again).stdout
    said = "`allowed-regressions` loosened: 0 → 100"
    assert said in gate(project.folder, *again, CI="true").stdout
    assert said in gate(project.folder, *again, JENKINS_URL="http://ci.example/").stdout


def test_run__another_address_behind_the_same_name__is_said(project) -> None:
    was = project.url
    with agent(answer) as other:
        project.url = other.url
        done = project.run("--baseline", "evals/results")
    assert f"target `agent`: `{was}` → `{other.url}`" in done.stdout


@pytest.mark.parametrize("asked", [{"url": "?mode=fake"}, {"query": {"mode": "fake"}}])
def test_run__another_query_of_a_listed_target__blocks_wherever_it_is_written(tmp_path, asked) -> None:
    write_suite(tmp_path, 2)

    def run(query: Mapping[str, object]):
        target = {"name": "a", "provider": "http", **query, "url": f"{running.url}{query.get('url', '')}"}
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [target]}))
        return gate(tmp_path, "run", "--target", "a", "--baseline", "latest", "--fail-on", "regressions,changed")

    with agent() as running:
        assert run({}).returncode == 0
        done = run(asked)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "target `a`: `query` not set →" in " ".join(done.stdout.split())


GRADED = """\
execution: {target: desk}
evalcases:
  - id: greeting
    expected_outcome: Says hello.
    input_messages: [{role: user, content: hello}]
    execution:
      evaluators:
        - {name: words, type: code_judge, script: python3 checks/words.py}
        - {name: sense, type: llm_judge, prompt: checks/sense.md}
"""
TARGETS = """\
targets:
  - {name: desk, provider: mock, response: hello, judge_target: grader}
  - {name: grader, provider: mock, response: '{"score": 1, "hits": [], "misses": [], "reasoning": "fine"}'}
  - {name: kinder, provider: mock, response: '{"score": 1, "hits": [], "misses": [], "reasoning": "kind"}'}
"""


@pytest.fixture
def graded(tmp_path) -> Path:
    (tmp_path / "checks").mkdir()
    for name, text in {
        "desk.eval.yaml": GRADED,
        "targets.yaml": TARGETS,
        "checks/words.py": "print('{\"score\": 1}')\n",
        "checks/sense.md": "Is {{candidate_answer}} a good answer?\n",
    }.items():
        (tmp_path / name).write_text(text)
    done = graded_run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path


def graded_run(folder: Path, *arguments: str):
    return gate(folder, "run", ".", "--output-dir", "results", "--fail-on", "regressions", *arguments)


def the_script(folder: Path) -> str:
    (folder / "checks/words.py").write_text("# kinder\nprint('{\"score\": 1.0}')\n")
    return "grader of 1 case changed: `checks/words.py"


def the_prompt(folder: Path) -> str:
    (folder / "checks/sense.md").write_text("Call {{candidate_answer}} a good answer.\n")
    return "grader of 1 case changed: `checks/sense.md`"


def the_command(folder: Path) -> str:
    (folder / "desk.eval.yaml").write_text(GRADED.replace("words.py", "words.py --kind"))
    return "grader of 1 case changed (script, prompt or rule): `greeting`"


def the_judge(folder: Path) -> str:
    (folder / "targets.yaml").write_text(TARGETS.replace("judge_target: grader", "judge_target: kinder"))
    return "LLM judge of 1 case: `grader (mock"


@pytest.mark.parametrize("bend", [the_script, the_prompt, the_command, the_judge])
def test_run__another_grader__is_said_and_can_block(graded, bend) -> None:
    said = bend(graded)
    done = graded_run(graded, "--baseline", "results", "--fail-on", "regressions,changed")
    assert f"  · {said}" in done.stdout, done.stdout + done.stderr
    assert "has a changed expectation" not in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
@pytest.mark.contract("case.checks-nothing")
@pytest.mark.parametrize("nothing", ["{type: regex, value: a*}", "{type: starts-with, value: ' '}"])
def test_run__assertion_that_holds_for_every_answer__is_called_that(tmp_path, nothing) -> None:
    suite = "execution: {target: desk}\ntests:\n- {id: greeting, input: hello, assertions: [ASSERTION]}\n"
    (tmp_path / "targets.yaml").write_text(TARGETS)
    (tmp_path / "desk.eval.yaml").write_text(suite.replace("ASSERTION", "{type: contains, value: hello}"))
    assert graded_run(tmp_path).returncode == 0
    (tmp_path / "desk.eval.yaml").write_text(suite.replace("ASSERTION", nothing))
    (tmp_path / "targets.yaml").write_text(TARGETS.replace("response: hello", "response: rude"))
    done = graded_run(tmp_path, "--baseline", "results", "--fail-on", "regressions,changed")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 case that passes in the baseline no longer has a check: `greeting`" in done.stdout


def test_run__nothing_has_changed__says_nothing(graded) -> None:
    every = ("--baseline", "results", "--fail-on", "regressions,changed,removed,new-failures")
    graded_run(graded, *every)
    done = graded_run(graded, *every)
    assert done.returncode == 0, done.stdout
    assert "differently" not in done.stdout


@pytest.mark.contract("case.same-expectation")
def test_run__same_evals_in_other_words_and_line_endings__says_nothing(project) -> None:
    project.cases[0]["expect"] |= {"maxLatencyMs": 50000}
    project.cases[3]["expect"] |= {"responseNotContains": ["never said"]}
    project.write_cases()
    every = ("--fail-on", "regressions,changed,removed,new-failures")
    assert project.run(*every).returncode == 0
    file = project.folder / "evals/weather.golden.json"
    text = json.dumps(project.cases, indent=1).replace("50000", "5e4", 1)
    text = text.replace('"expect": {', '"stubs": null, "expect": {"responseContainsAny": [], "toolParams": null,')
    file.write_bytes(text.replace("\n", "\r\n").encode())
    script = project.folder / "now.py"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    assert b"5e4" in file.read_bytes()
    done = project.run("--baseline", "evals/results", *every)
    assert TITLE not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def test_run__only_line_endings_of_the_eval_file_differ__is_measured_the_same(project) -> None:
    assert project.run("--baseline", "evals/results").returncode == 0
    file = project.folder / "evals/weather.golden.json"
    file.write_bytes(json.dumps(project.cases, indent=1).encode())
    project.run()
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    done = project.run("--baseline", "evals/results", "-v")
    assert TITLE not in done.stdout
