"""A mistake in an eval file is told as one, where it is: what nobody can check neither passes nor blames the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest

from tests.support.agents import agent
from tests.support.program import gate
from tests.support.world import ActionWorld, World, expect, head_of

ENGINE = "is not a valid pattern: Unbalanced bracket"
OTHER = {"id": "gs-other", "description": "", "input": {"message": "x"}, "expect": {"responseContains": ["ok"]}}
"""A case of tool-forge that passes."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of an agent that answers `ok`."""
    with agent() as running:
        yield running.url


class File(NamedTuple):
    """An eval file with one mistake."""

    name: str
    text: str
    line: int
    """The line of the mistake."""
    field: str


def tool_forge(expectation: dict[str, Any], field: str, *others: dict[str, Any]) -> File:
    """A case with this expectation in lines 2 to 4, before other cases."""
    begin = {"id": "gs-1", "description": "", "input": {"message": "x"}}
    first = f'{{ {json.dumps(begin)[1:-1]},\n"expect":\n{json.dumps(expectation)} }}'
    text = ",\n".join([first, *map(json.dumps, others)])
    return File("weather.golden.json", f"[\n{text}\n]\n", 4, f"[0].expect{field}")


def tool_forge_yaml(assertion: str, field: str) -> File:
    text = f"- id: gs-1\n  input: {{message: x}}\n  expect:\n    {assertion}\n"
    return File("weather.golden.yaml", text, 4, f"[0].expect{field}")


def agentv(assertion: str) -> File:
    text = f"tests:\n  - id: gs-1\n    criteria: c\n    input: x\n    assertions:\n      - {{{assertion}}}\n"
    return File("desk.eval.yaml", text, 6, "tests[0].assertions[0].value")


def agent_evals(case: str, line: int, field: str, *others: str) -> File:
    begin = '{"name": "s", "agent": {"name": "a", "model": "gpt-5-mini", "instructions": ""}, "cases": ['
    first = f'{{"id": "gs-1", "name": "n", "prompt": "x",\n{case}}}'
    text = ",\n".join([first, *others])
    return File("suite.json", f"{begin}\n{text}\n]}}\n", line, f"cases[0]{field}")


def write(folder: Path, file: File) -> str:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / file.name).write_text(file.text)
    return f"evals/{file.name}:{file.line}"


def run(folder: Path, url: str, *options: str) -> CompletedProcess[str]:
    return gate(folder, "run", "--agent-endpoint", url, "--report", "md=comment.md", *options)


def record(folder: Path) -> dict[str, Any]:
    results = folder / "evals" / "results"
    return json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())


def first_case(folder: Path) -> dict[str, Any]:
    return record(folder)["suites"][0]["cases"][0]


BROKEN_PATTERNS = {
    "responseMatches": tool_forge({"responseMatches": ["ok", "(["]}, ".responseMatches[1]"),
    "regexPattern": tool_forge({"regexPattern": "(["}, ".regexPattern"),
    "after another": tool_forge({"responseContains": ["no"], "responseMatches": ["(["]}, ".responseMatches[0]"),
    "yaml": tool_forge_yaml("responseMatches: ['([']", ".responseMatches[0]"),
    "agentv": agentv("type: regex, value: '(['"),
    "agentv negated": agentv("type: regex, value: '([', negate: true"),
    "agentv required": agentv("type: regex, value: '([', required: true"),
    "agent evals": agent_evals(
        '"assertions": [{"type": "matchesRegex", "pattern": "(["}]', 3, ".assertions[0].pattern"
    ),
}


@pytest.mark.contract("case.invalid-pattern")
@pytest.mark.parametrize("file", BROKEN_PATTERNS.values(), ids=BROKEN_PATTERNS)
def test_broken_pattern__fails_its_case_and_is_told_where_it_stands(tmp_path, endpoint, file) -> None:
    place = write(tmp_path, file)
    done = run(tmp_path, endpoint)
    assert done.returncode == 1, done.stdout + done.stderr
    case = first_case(tmp_path)
    assert (case["status"], case["errorKind"]) == ("failed", None), case["error"]
    (mistake,) = case["mistakes"]
    assert (mistake["kind"], mistake["location"]) == (
        "invalid_pattern",
        {"file": f"evals/{file.name}", "line": file.line},
    )
    assert mistake["field"] == file.field
    said = f"{place}: fix the pattern of gs-1: /([/ {ENGINE}"
    next_step = "Next step: Fix the invalid patterns in the eval files."
    console, comment = " ".join(done.stdout.split()), (tmp_path / "comment.md").read_text()
    assert said in console
    assert said in head_of(comment)
    assert next_step in console
    assert next_step in comment.replace("**", "")


@pytest.mark.contract("case.invalid-pattern")
@pytest.mark.parametrize("file", BROKEN_PATTERNS.values(), ids=BROKEN_PATTERNS)
def test_broken_pattern__validate_and_strict__refuse_it(tmp_path, endpoint, file) -> None:
    place = write(tmp_path, file)
    for done in (
        gate(tmp_path, "validate"),
        gate(tmp_path, "validate", "--strict"),
        run(tmp_path, endpoint, "--strict"),
    ):
        assert done.returncode == 2, done.stdout + done.stderr
        assert f"{place}: {file.field}: " in done.stderr
        assert done.stderr.count(ENGINE) == 1, done.stderr


def test_broken_flags__of_agent_evals__are_told_as_a_pattern_is(tmp_path, endpoint) -> None:
    assertion = '"assertions": [{"type": "matchesRegex", "pattern": "ok", "flags": "ii"}]'
    place = write(tmp_path, agent_evals(assertion, 3, ".assertions[0].pattern"))
    assert run(tmp_path, endpoint).returncode == 1
    assert f"{place}: fix the pattern of gs-1: /ok/ii has invalid flags" in head_of(
        (tmp_path / "comment.md").read_text()
    )
    done = gate(tmp_path, "validate")
    assert (done.returncode, f"{place}: cases[0].assertions[0].pattern" in done.stderr) == (2, True), done.stderr


UNKNOWN = {
    "misspelt": (
        tool_forge({"responseContain": ["never"]}, "", OTHER),
        'unknown assertion "responseContain" (did you mean "responseContains"?)',
    ),
    "of a generator": (
        tool_forge({"expectedTool": "t", "checks": ["c"]}, "", OTHER),
        'unknown assertion "expectedTool"; unknown assertion "checks"',
    ),
    "beside what holds always": (
        tool_forge({"responseContain": ["never"], "responseContains": []}, "", OTHER),
        'unknown assertion "responseContain"',
    ),
    "not supported": (
        tool_forge({"jsonValid": True}, "", OTHER),
        'the assertion "jsonValid" is recognised, but not supported',
    ),
    "misplaced": (
        tool_forge({}, "", OTHER)._replace(
            text='[{"id": "gs-1", "description": "", "input": {"message": "x"},\n"expect": {},\n\n'
            f'"responseContains": ["never"]}},\n{json.dumps(OTHER)}]'
        ),
        'unknown key "responseContains" (it belongs in `expect`)',
    ),
    "another word for all of them": (
        tool_forge({}, "", OTHER)._replace(
            text='[{"id": "gs-1", "description": "", "input": {"message": "x"},\n"expect": {},\n\n'
            f'"rubrics": [1]}},\n{json.dumps(OTHER)}]'
        ),
        'unknown key "rubrics" (did you mean "rubric"?)',
    ),
    "agent evals": (
        agent_evals(
            '"assertion": [{"type": "contains", "value": "never"}]',
            2,
            "",
            '{"id": "o", "name": "n", "prompt": "x", "assertions": [{"type": "contains", "value": "ok"}]}',
        ),
        'unknown key "assertion" (did you mean "assertions"?)',
    ),
}


@pytest.mark.contract("case.unknown-expectations")
@pytest.mark.parametrize(("file", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_expectations_alone__skip_their_case_in_sight_of_everybody(tmp_path, endpoint, file, words) -> None:
    write(tmp_path, file)
    done = run(tmp_path, endpoint)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = record(tmp_path)["summary"]
    assert (summary["passed"], summary["skipped"], summary["passRate"]) == (1, 1, 1.0)
    case = first_case(tmp_path)
    assert (case["status"], case["passed"]) == ("skipped", False)
    assert case["mistakes"][0]["kind"] == "unknown_expectations"
    comment = (tmp_path / "comment.md").read_text()
    for shown in (" ".join(done.stdout.split()), head_of(comment)):
        assert f"evals/{file.name}:" in shown
        assert f"gs-1 is skipped, because nothing is checked: {words}" in shown
    assert "1 skipped" in head_of(comment)
    assert "## ⚠️ " in comment
    assert "passes with every response" not in done.stdout + comment


@pytest.mark.parametrize(("file", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_expectations_alone__strict__refuses_them__and_validate_warns(tmp_path, endpoint, file, words) -> None:
    write(tmp_path, file)
    for done in (gate(tmp_path, "validate", "--strict"), run(tmp_path, endpoint, "--strict")):
        assert done.returncode == 2, done.stdout + done.stderr
        assert words in done.stderr
        assert f"evals/{file.name}:" in done.stderr
    done = gate(tmp_path, "validate")
    assert done.returncode == 0
    assert f"gs-1 is skipped, because nothing is checked: {words}" in done.stderr


def test_unknown_expectations_alone__nothing_else_ran__is_inconclusive(tmp_path, endpoint) -> None:
    write(tmp_path, tool_forge({"responseContain": ["never"]}, ""))
    done = run(tmp_path, endpoint)
    assert done.returncode == 3, done.stdout + done.stderr
    verdict = " ".join(done.stdout.partition("GATE INCONCLUSIVE")[2].split())
    assert 'unknown assertion "responseContain" (did you mean "responseContains"?)' in verdict
    assert "Next step: Correct the unknown expectations in the eval files: nothing else checks these cases." in verdict


def test_unknown_expectations__beside_known_ones_and_an_empty_expect__stay_warnings(tmp_path, endpoint) -> None:
    known = tool_forge({"responseContains": ["ok"], "responseMatch": ["x"]}, "", OTHER | {"expect": {}})
    write(tmp_path, known)
    done = run(tmp_path, endpoint)
    assert (done.returncode, record(tmp_path)["summary"]["passed"]) == (0, 2), done.stdout
    shown = head_of((tmp_path / "comment.md").read_text())
    assert 'gs-1: unknown assertion "responseMatch" (did you mean "responseMatches"?): it is not checked' in shown
    assert "gs-other: `expect` is empty: the case passes with every response" in shown
    assert run(tmp_path, endpoint, "--strict").returncode == 2


def test_unknown_expectations__of_agentv__are_refused_or_scored_and_never_pass(tmp_path, endpoint) -> None:
    file = agentv("type: contains, value: ok")
    write(tmp_path, file._replace(text=file.text.replace("assertions:", "assertion:")))
    done = run(tmp_path, endpoint)
    assert done.returncode == 2
    assert 'tests[0].assertion: unknown key (did you mean "assertions"?)' in done.stderr
    case = "id: gs-1, expected_outcome: o, input_messages: [{role: user, content: x}], evaluator: [{type: llm_judge}]"
    write(tmp_path, file._replace(text=f"evalcases:\n  - {{{case}}}\n"))
    done = run(tmp_path, endpoint)
    assert (done.returncode, "1 case needs a judge" in done.stderr) == (2, True), done.stderr


@pytest.mark.contract("case.unknown-expectations")
def test_case_that_passed__whose_expectations_became_unknown__is_never_green(world) -> None:
    made: World = world("PPPP*2")
    made.cases[0]["expect"] = {"responseContain": ["ok"]}
    made.write()
    seen = made.here("FPPP")
    expect(seen, 3, "inconclusive", first="missing-case-result", not_run=[0])
    assert "1 case that passed in the baseline was not run: gs-000" in seen.gate
    assert "the eval file has only unknown expectations" in " ".join(seen.gate.split())
    assert "**Next step:** Correct the unknown expectations in the eval files" in seen.head


def test_mistakes__pull_request__are_annotated_on_their_lines(action) -> None:
    made: ActionWorld = action
    made.main("PPP*2")
    made.cases[0]["expect"] = {"responseContain": ["ok"]}
    made.cases[1]["expect"] = {"responseMatches": ["(["]}
    made.write()
    seen = made.here("PPP")
    assert seen.code == 3, seen.text
    marks = {
        one["title"]: one["start_line"] for run in made.github.state.check_runs.values() for one in run.annotations
    }
    lines = (made.job.workspace / "evals" / made.suite).read_text().splitlines()
    for case, word in (("gs-000", "responseContain"), ("gs-001", "([")):
        where = next(at for at, line in enumerate(lines, 1) if word in line)
        assert marks[f"Mistake in the eval file: {case}"] == where
