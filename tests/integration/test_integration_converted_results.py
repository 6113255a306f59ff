"""Results of tools that nothing reads here: the lines of docs/convert-results.md, over files that these tools wrote.

What was run is in `tests/tools/recorded/`: of four questions the changed agent answers one wrong and raises at
another, and the judge of a third breaks. Every id, time and trace of the tool itself differs between the two runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.program import gate

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "convert-results.md"
RECORDED = ROOT / "tests" / "tools" / "recorded"
PROGRAMS = {
    match[1].removesuffix(".jq"): section
    for section in re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))
    if (match := re.search(r"(?m)^```jq\n# (\S+)$", section))
}
"""Sections of the page that convert by jq, by the name of their program."""
needs_jq = pytest.mark.skipif(not all(map(shutil.which, ("bash", "jq"))), reason="the lines are of bash and jq")
RIGHT, WRONG, SKIPPED = "passed", "failed", "skipped"
AGENT, JUDGE = "agent_error", "evaluation_error"
FOUR = ("Refund order 4711", "When are you open?", "Cancel order 12", "Who are you?")
ENDINGS = {
    "lm-eval": dict(zip("0123", (WRONG, RIGHT, WRONG, RIGHT), strict=True)),
    "mlflow": dict(zip(FOUR, (WRONG, RIGHT, AGENT, JUDGE), strict=True)),
    "langfuse": dict(zip(FOUR, (WRONG, RIGHT, AGENT, JUDGE), strict=True)),
    "phoenix": dict(zip(FOUR, (WRONG, RIGHT, AGENT, JUDGE), strict=True)),
    "ragas": dict(zip(FOUR, (WRONG, RIGHT, WRONG, JUDGE), strict=True)),
    "giskard": dict(zip((*FOUR, "Are you away?"), (WRONG, RIGHT, AGENT, JUDGE, SKIPPED), strict=True)),
    "ctrf": {"refund": WRONG, "hours": RIGHT, "cancel": WRONG, "away": SKIPPED, "retried": WRONG},
}
"""How the cases of the changed agent end; all of them passed before, but for those that are skipped."""
IN_XML = {
    "playwright": {"orders › refund": WRONG, "orders › cancel": AGENT},
    "jest": {"orders refund": WRONG, "orders cancel": WRONG},
    "mocha": {"refund": WRONG, "cancel": WRONG},
    "cucumber": {"refund": WRONG, "cancel": WRONG},
    "node": {"refund": WRONG, "cancel": WRONG},
    "robot": {"Refund": WRONG, "Cancel": WRONG},
}
"""Cases that end otherwise with the changed agent, in the JUnit XML of each tool."""


def convert(tool: str, side: str, folder: Path) -> str:
    """Run the page's line over the files that the tool wrote; return what the line wrote."""
    section = PROGRAMS[tool]
    (name, program) = re.findall(r"(?ms)^```jq\n# (\S+)\n(.*?)^```", section)[0]
    (line,) = re.findall(r"(?m)^\$ (jq .*)$", section)
    shutil.copytree(RECORDED / tool / side, folder)
    (folder / name).write_text(program)
    subprocess.run(["bash", "-ec", line], cwd=folder, check=True)
    return str(folder / "results.jsonl")


def options(tool: str) -> list[str]:
    """The rules for scores that the page's command has."""
    (command,) = re.findall(r"(?m)^\$ eval-gate check results\.jsonl (.*)--baseline latest", PROGRAMS[tool])
    return [word.strip("'") for word in command.split()]


def endings(folder: Path) -> dict[str, str]:
    """How each case of the only run in `folder` ended."""
    (file,) = folder.glob("*/run.json")
    cases = [one for suite in json.loads(file.read_text())["suites"] for one in suite["cases"]]
    for one in cases:
        if one["graded"] and one["status"] != "error":  # a score with --pass-score 0.7
            one["status"] = RIGHT if one["score"] >= 0.7 else WRONG
    return {one["id"]: one["errorKind"] if one["status"] == "error" else one["status"] for one in cases}


def test_page__every_recorded_tool__has_a_line_or_a_command() -> None:
    assert set(PROGRAMS) == set(ENDINGS)
    assert {one.name for one in RECORDED.iterdir() if one.is_dir()} == {*ENDINGS, *IN_XML}


@needs_jq
@pytest.mark.rows_each("tool")
@pytest.mark.parametrize("tool", ENDINGS)
def test_convert__what_the_tool_wrote__is_compared_and_every_ending_is_its_own(tool, tmp_path) -> None:
    before, now = convert(tool, "base", tmp_path / "base"), convert(tool, "now", tmp_path / "now")
    good = gate(tmp_path, "check", before, *options(tool), "--output-dir", "first")
    assert (good.returncode, set(endings(tmp_path / "first").values()) - {SKIPPED}) == (0, {RIGHT}), good.stderr
    done = gate(
        tmp_path, "check", now, "--baseline", before, *options(tool), "--fail-on", "regressions", "--output-dir", "o"
    )
    assert done.returncode == 1, done.stderr
    assert endings(tmp_path / "o") == ENDINGS[tool]
    count = len(ENDINGS[tool])
    assert f"{count} of {count} cases are in the baseline by suite and id" in done.stderr
    expected = [name for name, ending in ENDINGS[tool].items() if ending in {WRONG, AGENT} and name != "retried"]
    assert "REGRESSIONS (2)" in done.stdout
    assert len(expected) == 2
    assert all(name in done.stdout for name in expected)


@needs_jq
def test_convert__the_same_agent_again__is_green(tmp_path) -> None:
    before, again = (convert("phoenix", "base", tmp_path / name) for name in ("base", "again"))
    done = gate(tmp_path, "check", again, "--baseline", before, "--fail-on", "regressions")
    assert done.returncode == 0
    assert "4 of 4 pass (baseline: 4 of 4)" in done.stdout


@needs_jq
@pytest.mark.parametrize("tool", ["mlflow", "phoenix", "langfuse"])
def test_convert__tool_with_traces__each_line_has_its_own(tool, tmp_path) -> None:
    lines = [json.loads(one) for one in Path(convert(tool, "base", tmp_path / "base")).read_text().splitlines()]
    assert all(line["trace_id"] for line in lines), lines


@needs_jq
def test_convert__trials__are_executions_of_one_case(tmp_path) -> None:
    lines = Path(convert("phoenix", "base", tmp_path / "base")).read_text().splitlines()
    assert [json.loads(one)["trial"] for one in lines] == [1, 2] * 4


@needs_jq
@pytest.mark.parametrize(
    ("tool", "before", "after", "why"),
    [
        ("ctrf", '"status": "skipped"', '"status": "other"', "away: its status is other"),
        ("mlflow", '"state":"OK"', '"state":"IN_PROGRESS"', "the trace ended as IN_PROGRESS"),
        ("mlflow", '"value":true', '"value":"good"', "correct gave no score"),
        ("langfuse", '"value": true', '"value": "good"', "correct gave no score"),
        (
            "phoenix",
            '"label": "True",\n        "score": 1.0',
            '"label": "good",\n        "score": null',
            "correct gave no score",
        ),
        ("giskard", '"status":"skip","message":"not today"', '"status":"new"', "away gave no score"),
        ("ragas", '"string_present":1.0', '"string_present":NaN', "string_present gave no score"),
        ("lm-eval", '"exact_match": 1.0', '"exact_match": NaN', "exact_match gave no score"),
    ],
)
def test_convert__what_the_tool_did_not_decide__is_no_pass(tool, before, after, why, tmp_path, monkeypatch) -> None:
    changed = tmp_path / "recorded"
    shutil.copytree(RECORDED / tool, changed / tool)
    (file,) = [one for one in (changed / tool / "base").rglob("*") if one.is_file()]
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    if tool == "giskard":
        file.write_text(file.read_text().replace('"status":"skip"', '"status":"new"'))
    monkeypatch.setattr(f"{__name__}.RECORDED", changed)
    done = gate(tmp_path, "check", convert(tool, "base", tmp_path / "base"), *options(tool))
    assert done.returncode == 3
    assert why in done.stdout


@needs_jq
def test_convert__numbers_alone__need_a_rule(tmp_path) -> None:
    done = gate(tmp_path, "check", convert("ragas", "base", tmp_path / "base"))
    assert done.returncode == 2
    assert 'error[missing-score-rule]: no rule says from which value the score "string_present" passes' in done.stderr


@pytest.mark.parametrize("tool", IN_XML)
def test_xml__that_the_page_names__is_compared(tool, tmp_path) -> None:
    before, now = (RECORDED / tool / side / "out.xml" for side in ("base", "now"))
    done = gate(tmp_path, "check", str(now), "--baseline", str(before), "--fail-on", "regressions", "--output-dir", "o")
    assert done.returncode == 1
    assert "REGRESSIONS (2)" in done.stdout
    found = endings(tmp_path / "o")
    assert {name: ending for name, ending in found.items() if ending not in {RIGHT, SKIPPED}} == IN_XML[tool]
    assert sorted(found.values()).count(SKIPPED) == 1


@pytest.mark.parametrize(
    ("file", "what", "way"),
    [
        ("playwright/out.json", "a JSON report of Playwright", "junit-xml"),
        ("jest/out.json", "a JSON report of Jest or Vitest", "junit-xml"),
        ("mocha/out.json", "a JSON report of Mocha", "junit-xml"),
        ("cucumber/out.json", "a JSON report of Cucumber", "junit-xml"),
        ("robot/output.xml", "an output.xml of Robot Framework", "junit-xml"),
        ("node/out.tap", "TAP", "junit-xml"),
        ("ctrf/base/ctrf.json", "a CTRF report", "ctrf"),
        ("mlflow/base/mlflow.json", "a result of MLflow", "mlflow"),
        ("phoenix/base/phoenix.json", "an experiment of Phoenix", "phoenix"),
        ("ragas/base/ragas.jsonl", "a result of ragas", "ragas"),
        ("giskard/base/giskard.json", "a result of Giskard", "giskard"),
        ("lm-eval/base/lm-eval", "a log of lm-evaluation-harness", "lm-evaluation-harness"),
    ],
)
def test_check__a_file_that_must_be_converted__names_tool_and_way(file, what, way, tmp_path) -> None:
    done = gate(tmp_path, "check", str(RECORDED / file))
    assert done.returncode == 2
    assert f"is {what}, which is not read directly: convert it, see " in done.stderr
    assert f"/docs/convert-results.md#{way}\n" in done.stderr
    assert f"\n## {way}\n".replace("-", " ") in PAGE.read_text(encoding="utf-8").lower().replace("-", " ")
