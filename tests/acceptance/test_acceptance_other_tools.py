"""A team with another eval tool: its results through the program, from file to exit code and words."""

import json
import stat
from pathlib import Path

import pytest

from tests.support.agents import agent
from tests.support.program import gate

FILES = Path(__file__).parents[1] / "unit" / "external_results" / "files"
RULE = ("--score", "policy>=0.3")


def promptfoo(folder: Path, name: str, failing: tuple[str, ...] = (), cases: int = 12) -> Path:
    """A results file as promptfoo writes it, with these tests failing."""
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    pattern = document["results"]["results"][0]
    rows = []
    for number in range(cases):
        row = json.loads(json.dumps(pattern))
        description = f"case {number}"
        row["metadata"], row["testIdx"] = {}, number
        row["vars"] = row["testCase"]["vars"] = {"q": f"question {number}"}
        row["testCase"].update(description=description, metadata={})
        if description in failing:
            row.update(success=False, score=0, failureReason=1, error="Expected output to contain 4711")
            row["gradingResult"].update({"pass": False, "score": 0, "reason": "Expected output to contain 4711"})
        rows.append(row)
    document["results"] |= {"results": rows, "stats": {"successes": cases - len(failing), "failures": len(failing)}}
    file = folder / name
    file.write_text(json.dumps(document))
    return file


def again(folder: Path, failing: tuple[str, ...]) -> str:
    """A command that stands in for the tool: it writes results of these names, and says how it was asked."""
    promptfoo(folder, "again.json", failing)
    script = folder / "again.sh"
    script.write_text(f'#!/bin/sh\necho "$1" >> {folder}/asked.txt\ncp {folder}/again.json "$2"\nexit 100\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return f"{script} {{ids_regex}} {{output}}"


@pytest.fixture
def history(tmp_path):
    """Ten runs of the main branch, all of them green."""
    for number in range(10):
        done = gate(tmp_path, "check", promptfoo(tmp_path, f"main-{number}.json").name)
        assert done.returncode == 0, done.stderr
    return tmp_path


def judged(folder: Path, *arguments: str):
    return gate(folder, "check", *arguments, "--baseline", "latest", "--fail-on", "regressions", CI="true")


def test_judge__a_case_that_always_passed_fails__is_red_and_names_it(history) -> None:
    done = judged(history, promptfoo(history, "out.json", ("case 3",)).name)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REGRESSIONS (1): case 3" in done.stdout
    assert "Expected output to contain 4711" in done.stdout
    assert "12 of 12 cases are in the baseline by description and vars" in done.stderr


def test_judge__fewer_than_half_of_the_baselines_cases__are_no_green_result(history) -> None:
    done = judged(history, promptfoo(history, "five.json", cases=5).name)
    assert done.returncode == 3, done.stdout
    assert "these results have 5 cases, less than 50.0 % of the 12 in the baseline" in done.stderr
    half = judged(history, promptfoo(history, "six.json", cases=6).name)
    assert (half.returncode, "removed: " in half.stdout) == (0, True)
    two = promptfoo(history, "two.json", cases=2).name
    assert judged(history, two).returncode == 3
    assert "less than 40.0 %" in judged(history, two, "--min-coverage", "0.4").stderr
    allowed = judged(history, two, "--min-coverage", "0")
    assert allowed.returncode == 0
    assert "`min-coverage` loosened: 0.5 → 0" in allowed.stdout
    assert "4 cases that pass in the baseline were removed" in allowed.stdout


def test_judge__offers_no_command_of_ours__which_could_not_run_another_tools_cases(history) -> None:
    out = promptfoo(history, "out.json", ("case 3",)).name
    done = judged(history, out, "--report", "md=c.md", "--report", "html=p.html")
    assert done.returncode == 1
    said = done.stdout + done.stderr + (history / "c.md").read_text() + (history / "p.html").read_text()
    assert "--case" not in said.replace("page.js", "")


def test_judge__the_command_passes_it_again__is_green_and_it_is_not_sure(history) -> None:
    command = again(history, ())
    out = promptfoo(history, "out.json", ("case 3",)).name
    done = judged(history, out, "--rerun-command", command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set((history / "asked.txt").read_text().splitlines()) == {"^(case 3)$"}


def test_judge__the_command_passes_another_case_that_asks_the_same__clears_nothing(tmp_path) -> None:
    """Two providers are asked the same: what one of them answers says nothing of the other."""
    line = {"input": "refund 4711", "expected": "yes"}

    def results(name: str, *rows: tuple[str, str, str]) -> str:
        lines = [json.dumps({"suite": suite, "id": case, "status": status} | line) for suite, case, status in rows]
        (tmp_path / name).write_text("\n".join(lines))
        return name

    both = (("a", "one"), ("a", "two"), ("b", "one"))
    for _ in range(4):
        assert gate(tmp_path, "check", results("r.jsonl", *((*key, "passed") for key in both))).returncode == 0
    now = results("r.jsonl", ("a", "one", "failed"), ("a", "two", "passed"), ("b", "one", "passed"))
    for others in ((("b", "one", "passed"),), (("a", "two", "passed"),), (("a", "strange", "passed"),)):
        done = judged(tmp_path, now, "--rerun-command", f"cp {results('again.jsonl', *others)} {{output}}")
        assert done.returncode == 3, (others, done.stdout)
        assert "its results have none of the requested cases" in done.stdout


def test_judge__a_case_is_fixed__the_command_that_runs_what_fails_again_is_not_started(tmp_path) -> None:
    options = ["--fail-on", "never"]
    for status in ("failed", "failed", "failed", "passed"):
        (tmp_path / "r.jsonl").write_text(json.dumps({"suite": "a", "id": "one", "status": status}))
        done = gate(tmp_path, "check", "r.jsonl", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        again = ["--rerun-command", "touch started; cp r.jsonl {output}"]
        options = ["--fail-on", "never", "--baseline", "evals/results", *again]
    assert "NEW PASSES (1)" in done.stdout
    assert not (tmp_path / "started").exists()


def test_judge__the_command_writes_one_of_two_files_anew__the_other_is_no_execution(tmp_path) -> None:
    def junit(name: str, case: str, *, passes: bool) -> str:
        failure = "" if passes else '<failure message="no"/>'
        (tmp_path / name).write_text(
            f'<testsuite name="s"><testcase classname="t" name="{case}">{failure}</testcase></testsuite>'
        )
        return name

    files = (junit("a.xml", "a", passes=True), junit("b.xml", "b", passes=True))
    for _ in range(4):
        assert gate(tmp_path, "check", *files).returncode == 0
    junit("b.xml", "b", passes=False)
    done = judged(tmp_path, *files, "--rerun-command", "touch a.xml")
    assert done.returncode == 3, done.stdout
    assert "its results have none of the requested cases, such as b" in done.stdout


def test_judge__the_command_fails_it_again_and_again__is_red_by_evidence(history) -> None:
    command = again(history, ("case 3",))
    done = judged(history, promptfoo(history, "out.json", ("case 3",)).name, "--rerun-command", command)
    assert done.returncode == 1, done.stdout + done.stderr
    assert set((history / "asked.txt").read_text().splitlines()) == {"^(case 3)$"}
    assert "failed 2 of 2 here, 0 of 10 in the history" in done.stdout


@pytest.mark.parametrize("command", ["false", "exit 0", "./no-such-program {output}", "sleep 60"])
def test_judge__the_command_brings_nothing__is_inconclusive_and_says_why(history, command) -> None:
    out = promptfoo(history, "out.json", ("case 3",)).name
    done = judged(history, out, "--rerun-command", command, "--rerun-budget", "2s")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the command for re-runs returned no results: it " in done.stdout


def test_judge__the_budget_is_one_re_run__one_case_is_decided_and_the_other_says_why_not(history) -> None:
    command, failing = again(history, ("case 3", "case 5")), ("case 3", "case 5")
    out = promptfoo(history, "out.json", failing).name
    done = judged(history, out, "--rerun-command", command, "--rerun-budget", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (history / "asked.txt").read_text().splitlines() == ["^(case 3)$"]
    assert "the re-run budget is used up" in " ".join(done.stdout.split())


def test_judge__the_command_runs_other_cases__is_inconclusive_and_says_so_once(history) -> None:
    """Such as with a filter for descriptions where a case has none."""
    promptfoo(history, "other.json", cases=2)
    out = promptfoo(history, "out.json", ("case 3",)).name
    done = judged(history, out, "--rerun-command", "echo run >> ran.txt; cp other.json {output}")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "its results have none of the requested cases, such as case 3" in done.stdout
    assert (history / "ran.txt").read_text() == "run\n"


def test_judge__the_command_leaves_a_case_as_skipped__has_not_run_it(tmp_path) -> None:
    """What a runner's filter leaves out, vitest writes as skipped: a filter that fits nothing clears nobody."""

    def suite(name: str, inside: str) -> str:
        file = tmp_path / name
        file.write_text(f'<testsuite name="s"><testcase classname="c" name="a">{inside}</testcase></testsuite>')
        return name

    for _ in range(10):
        gate(tmp_path, "check", suite("main.xml", ""))
    out, again = suite("out.xml", '<failure message="no"/>'), suite("again.xml", "<skipped/>")
    done = judged(tmp_path, out, "--rerun-command", f"cp {again} {{output}}")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "its results have none of the requested cases, such as a" in done.stdout


def test_judge__a_case_that_is_unsteady_on_record_fails_once__is_no_regression(tmp_path) -> None:
    for number in range(10):
        failing = ("case 3",) if number % 3 == 1 else ()
        gate(tmp_path, "check", promptfoo(tmp_path, "main.json", failing).name, "--fail-on", "never")
    done = judged(tmp_path, promptfoo(tmp_path, "out.json", ("case 3",)).name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "INCONCLUSIVE OR FLAKY (1)\n  case 3: " in done.stdout


@pytest.mark.parametrize("earlier", ["FP", "FFP", "PFP", "FFFFFFP"])
def test_judge__newest_run_passed_and_the_record_is_too_short__is_inconclusive(tmp_path, earlier) -> None:
    for end in earlier:
        gate(tmp_path, "check", promptfoo(tmp_path, "main.json", ("case 3",) * (end == "F")).name, "--fail-on", "never")
    done = judged(tmp_path, promptfoo(tmp_path, "out.json", ("case 3",)).name)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "no command re-runs it" in " ".join(done.stdout.split())


def test_judge__the_tool_broke__is_inconclusive(history) -> None:
    out = promptfoo(history, "out.json")
    document = json.loads(out.read_text())
    for row in document["results"]["results"]:
        row.update(success=False, failureReason=2, error="Error: connect ECONNREFUSED", gradingResult=None)
    out.write_text(json.dumps(document))
    done = judged(history, out.name)
    assert done.returncode == 3, done.stdout
    assert "ECONNREFUSED" in done.stdout


def test_judge__a_case_has_another_name_and_asks_the_same__keeps_its_record(history) -> None:
    out = promptfoo(history, "out.json", ("case 3",))
    document = json.loads(out.read_text())
    document["results"]["results"][3]["testCase"]["description"] = "renamed"
    out.write_text(json.dumps(document))
    done = judged(history, out.name)
    assert (done.returncode, "REGRESSIONS (1): renamed" in done.stdout) == (1, True), done.stdout
    said = "11 of 12 cases are in the baseline by description and vars, 1 more by their prompt under another name"
    assert said in done.stderr


def scored(folder: Path, score: float) -> str:
    lines = [
        {"suite": "s", "id": f"c{n}", "score": score, "checks": [{"name": "policy", "score": score}]} for n in range(3)
    ]
    (folder / "r.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"suite": "s", "id": "d", "status": "passed"}])))
    return "r.jsonl"


def test_judge__a_lower_rule_for_a_scorer__is_said_and_fail_on_changed_blocks_it(tmp_path) -> None:
    assert gate(tmp_path, "check", scored(tmp_path, 0.9), "--score", "policy>=0.7").returncode == 0
    lower = ("check", scored(tmp_path, 0.5), "--score", "policy>=0.3", "--baseline", "latest", "--fail-on")
    blocked = gate(tmp_path, *lower, "regressions,changed")
    assert blocked.returncode == 1
    assert "1 rule was loosened (limit 0)" in blocked.stdout
    done = gate(tmp_path, *lower, "regressions")
    assert done.returncode == 0, done.stderr
    assert "`score` loosened: policy>=0.7 → policy>=0.3" in done.stdout
    assert "grader of 3 cases changed (script, prompt or rule)" in done.stdout  # and not the fourth


def checked(folder: Path, *names: str) -> str:
    checks = [{"name": name, "passed": True} for name in names]
    (folder / "r.jsonl").write_text(json.dumps({"id": "a", "status": "passed", "checks": checks}))
    return "r.jsonl"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (("policy",), "1 case that passes in the baseline has fewer checks: `a`"),
        ((), "1 case that passes in the baseline no longer has a check: `a`"),
        (("policy", "other"), "1 case that passes in the baseline has a changed expectation: `a`"),
        (("format", "policy", "more"), None),
    ],
)
def test_judge__scorer_that_a_case_had__is_said_to_be_gone(tmp_path, now, said) -> None:
    assert gate(tmp_path, "check", checked(tmp_path, "policy", "format")).returncode == 0
    done = gate(tmp_path, "check", checked(tmp_path, *now), "--baseline", "latest")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout if said else "evaluation setup changed" not in done.stdout


def canaries(folder: Path) -> str:
    """Everything that is left on disk below the folder of results."""
    return "".join(file.read_text() for file in (folder / "evals" / "results").rglob("*") if file.is_file())


def said(folder: Path) -> None:
    line = {"id": "a", "status": "failed", "input": "ask", "output": "canary-one", "error": "got canary-two"}
    checks = [{"name": "c", "passed": False, "reason": "it said canary-three"}]
    calls = [{"name": "t", "params": {"x": "canary-four"}, "output": "canary-five"}]
    (folder / "r.jsonl").write_text(json.dumps(line | {"checks": checks, "tool_calls": calls}))


def test_judge__store_none__leaves_no_word_of_an_answer(tmp_path) -> None:
    said(tmp_path)
    assert gate(tmp_path, "check", "r.jsonl").returncode == 1
    assert "canary" in canaries(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    said(other)
    done = gate(other, "check", "r.jsonl", "--keep-responses", "none", "--report", "html", "--report", "md")
    assert done.returncode == 1
    assert "canary" not in canaries(other) + done.stdout + done.stderr


def test_judge__redact__masks_what_is_stored_and_changes_no_verdict(tmp_path) -> None:
    said(tmp_path)
    (tmp_path / "eval-gate.yaml").write_text("redact: ['canary-\\w+']\n")
    done = gate(tmp_path, "check", "r.jsonl", "--report", "html", "--report", "md")
    assert done.returncode == 1, done.stderr
    assert "canary" not in canaries(tmp_path) + done.stdout + done.stderr
    assert "it said ***" in canaries(tmp_path)


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("promptfoo-output.jsonl", ()),
        ("deepeval-test-run.json", ()),
        ("deepeval-pytest-junit.xml", ()),
        ("inspect-log.eval", RULE),
        ("inspect-log.json", RULE),
        ("agentv-index.jsonl", ()),
    ],
)
def test_judge__each_tools_own_file__is_judged_and_reported(file, arguments, tmp_path) -> None:
    done = gate(tmp_path, "check", str(FILES / file), *arguments, "--report", "md=c.md", "--report", "html=p.html")
    assert done.returncode == 1, done.stdout + done.stderr  # each holds a case that fails
    assert "GATE FAILED" in done.stdout
    assert "Agent eval gate" in (tmp_path / "c.md").read_text()
    assert (tmp_path / "p.html").stat().st_size > 3_000


@pytest.mark.parametrize(("again", "outcome"), [("no", "failed"), ("ok", "passed")])
def test_judge__a_run_as_lines__gets_the_verdict_of_the_run(tmp_path, again, outcome) -> None:
    """Where its re-runs find regressions, and where they clear them."""
    (tmp_path / "evals").mkdir()
    cases = [
        {"id": f"gs-{n}", "input": {"message": f"ask {n}"}, "expect": {"responseContains": ["ok"]}} for n in range(6)
    ]
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases))

    def answering(*failing: int):
        seen: list[int] = []

        async def handler(exchange) -> None:
            asked = int(exchange.json["message"].split()[1])
            said = again if asked in seen else "no"
            seen.append(asked)
            exchange.answer({"response": said if asked in failing else "ok", "toolCalls": []})

        return handler

    def run(name: str, *more: str, failing: tuple[int, ...] = ()) -> dict:
        with agent(answering(*failing)) as running:
            gate(tmp_path, "run", "--agent-endpoint", running.url, "--output-dir", name, *more)
        return record(tmp_path / name)

    def as_brought(name: str, *more: str) -> dict:
        (tmp_path / f"{name}.jsonl").write_text(lines_of(record(tmp_path / name)))
        gate(tmp_path, "check", f"{name}.jsonl", "--output-dir", f"{name}-brought", *more)
        return record(tmp_path / f"{name}-brought")

    run("main")
    as_brought("main")
    rules = ("--fail-on", "regressions", "--reruns", "3")
    own = run("change", *rules, "--baseline", "main", failing=(2, 4))
    brought = as_brought("change", *rules, "--baseline", "main-brought")
    assert verdict_of(brought) == verdict_of(own)
    assert verdict_of(own)[0] == outcome
    assert verdict_of(own)[3]["gs-2"][1] > 0


def lines_of(run: dict) -> str:
    """A run of ours as a tool of somebody's own would write it: a line for each execution."""
    rows = []
    for case in (case for suite in run["suites"] for case in suite["cases"]):
        executions = case["trials"] or [case]
        first_rerun = len(executions) - case["reruns"]
        rows += [
            {"id": case["id"], "status": one["status"], "trial": number}
            | ({"rerun": True} if number >= first_rerun else {})
            | {"output": (one.get("details") or case["details"])["response"]}
            for number, one in enumerate(executions)
        ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def record(folder: Path) -> dict:
    return json.loads((folder / json.loads((folder / "latest.json").read_text())["path"]).read_text())


def verdict_of(run: dict) -> tuple:
    """What the gate said, which classes cases have, and how often each was run."""
    changes = {
        one["caseId"]: (one["change"], one["grounds"] and one["grounds"]["kind"])
        for one in run["comparison"]["changes"]
    }
    runs = {case["id"]: (len(case["trials"]), case["reruns"]) for suite in run["suites"] for case in suite["cases"]}
    return run["verdict"]["outcome"], run["verdict"]["exitCode"], changes, runs


def test_junit__in_and_out__keeps_names_counts_and_places(tmp_path) -> None:
    source = (
        '<testsuites><testsuite name="s"><testcase classname="tests.test_a" name="one" file="tests/test_a.py" line="3"'
        ' time="0.5"/><testcase classname="tests.test_a" name="two[x]"><failure message="wrong"/></testcase>'
        '<testcase classname="tests.test_b" name="three"><skipped message="later"/></testcase></testsuite></testsuites>'
    )
    (tmp_path / "in.xml").write_text(source)
    gate(tmp_path, "check", "in.xml", "--report", "junit=out.xml")
    out = (tmp_path / "out.xml").read_text()
    for part in ('classname="tests.test_a"', 'name="two[x]"', 'file="tests/test_a.py"', 'line="3"', 'time="0.500"'):
        assert part in out
    assert 'tests="3" failures="1" errors="0" skipped="1"' in out
