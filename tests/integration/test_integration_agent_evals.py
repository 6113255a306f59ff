"""Agent Evals suites as a person runs them: real processes, a stand-in for the model, from arguments to reports."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.test_integration_models import completion
from tests.integration.test_integration_run import ENVIRONMENT, PROGRAM, ROOT, gate, record, wait_until
from tests.support.agents import Exchange, agent
from tests.support.model_server import Answer, ModelServer, model_server, openai_answer
from tests.unit.formats.agent_evals.test_formats_agent_evals_dialect import EXAMPLE

HOME = ROOT / "examples" / "agent-evals"
KEY = {"OPENAI_API_KEY": "sk-test-abcdef"}
FILE_TOOLS = ["readFile", "writeFile"]
GOOD, BAD = openai_answer("Here is the expected text."), openai_answer("No.")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the example suite of the text, as it stands."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "example.json").write_text(EXAMPLE)
    return tmp_path


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A copy of our own example."""
    folder = tmp_path / "agent-evals"
    shutil.copytree(HOME, folder, ignore=shutil.ignore_patterns("__pycache__", "tmp"))
    return folder


@contextmanager
def stand_in() -> Iterator[tuple[str, ...]]:
    """The example's model, running; the arguments that lead to it."""
    command = [sys.executable, "-I", str(HOME / "model.py"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield "--provider", "openai-compatible", "--base-url", process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=20)


def agent_evals(folder: Path, *arguments: str, server: ModelServer | None = None, **environment: str):
    at = {"OPENAI_BASE_URL": f"{server.url}/v1"} if server else {}
    return gate(folder, "agent-evals", *arguments, **(KEY | at | environment))


def reports(folder: Path, out: str = "tmp/agent-evals") -> list[Path]:
    return sorted((folder / out / "reports").glob("*"))


def report(folder: Path, out: str = "tmp/agent-evals") -> dict:
    (only,) = [path for path in reports(folder, out) if path.suffix == ".json"]
    return json.loads(only.read_text())


def suite(name: str = "other", *cases: dict, **agent) -> str:
    described = {"name": "A", "model": "gpt-5-mini", "instructions": "be brief"} | agent
    return json.dumps({"name": name, "agent": described, "cases": [*cases]})


def case(case_id: str, value: str = "expected", **fields) -> dict:
    return {"id": case_id, "name": "n", "prompt": "p", "assertions": [{"type": "contains", "value": value}]} | fields


def timeless(text: str) -> str:
    """The text without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", "2026-11-21T10:00:00.000Z", text)
    text = re.sub(r'"durationMs": \d+', '"durationMs": 0', text)
    return re.sub(r"\b\d+\.\d s\b", "0.0 s", text)


def test_skipped_case__by_a_mistake_of_the_suite__is_no_success_and_says_why(project) -> None:
    wrong = {"id": "b", "name": "n", "prompt": "p", "assertion": [{"type": "contains", "value": "expected"}]}
    (project / "suites" / "example.json").write_text(suite("mine", case("a"), wrong))
    with model_server(GOOD) as server:
        done = agent_evals(project, "--all", "--report", "both", server=server)
    why = 'unknown key "assertion" (did you mean "assertions"?)'
    assert "1 passed, 0 failed, 0 errors, 1 skipped" in done.stdout
    assert done.returncode == 1
    assert [one["status"] for one in report(project)["suites"][0]["cases"]] == ["pass", "skip"]
    assert why in report(project)["suites"][0]["cases"][1]["error"]
    (page,) = [path for path in reports(project) if path.suffix == ".md"]
    assert "- SKIP " in page.read_text()
    assert why in " ".join(done.stdout.split())


@pytest.mark.contract("agent_evals.suite.example", "agent_evals.command.report", "agent_evals.report.names")
def test_example__as_it_stands__passes_and_writes_its_reports(project, golden) -> None:
    with model_server(GOOD) as server:
        done = agent_evals(project, "--suite", "example", "--report", "both", server=server)
        asked = server.asked
    assert done.returncode == 0, done.stderr
    assert (asked.line, asked.header("authorization")) == ("POST /v1/chat/completions", "Bearer sk-test-abcdef")
    assert asked.body["model"] == "gpt-5-mini"
    assert [message["content"] for message in asked.body["messages"]] == [
        "Agent system prompt here",
        "User prompt to test",
    ]
    written, page = reports(project)
    assert re.fullmatch(r"report-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.json", written.name)
    assert page.name == f"{written.stem}.md"
    golden("agent-evals/example.json", timeless(written.read_text()))
    golden("agent-evals/example.md", timeless(page.read_text()))
    assert "my-suite 1.0.0: 1 of 1 passed" in done.stdout
    assert f"report: {written.relative_to(project)}" in done.stdout
    assert "1 suite, 1 case: 1 passed, 0 failed, 0 errors (100.0 %)" in done.stdout
    assert "sk-test-abcdef" not in done.stdout + done.stderr + written.read_text()


@pytest.mark.contract("agent_evals.command.suite", "agent_evals.command.report")
@pytest.mark.parametrize(
    ("arguments", "endings"),
    [
        (["--suite=example"], [".json"]),
        (["--", "--suite=example"], [".json"]),
        (["--suite", "example", "--", "--report=md"], [".md"]),
        (["--suite=example", "--all=false", "--report", "both"], [".json", ".md"]),
    ],
    ids=str,
)
def test_arguments__as_the_text_writes_them__are_taken(project, arguments, endings) -> None:
    (project / "suites" / "broken.json").write_text("{")
    with model_server(GOOD) as server:
        done = agent_evals(project, *arguments, server=server)
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in reports(project)] == endings


@pytest.mark.contract("agent_evals.command.exit_code", "agent_evals.command.verbose")
def test_case_fails__exits_1_and_verbose_says_why(project) -> None:
    with model_server(BAD) as server:
        short = agent_evals(project, "--suite", "example", server=server)
        long = agent_evals(project, "--suite", "example", "--verbose", server=server)
    assert (short.returncode, long.returncode) == (1, 1)
    why = 'my-suite / case-1: contains: Output does not contain "expected text" (expected expected text, got No.)'
    assert why in long.stdout
    assert why not in short.stdout
    assert "--verbose shows the failed assertions" in short.stdout
    assert "  FAIL   case-1  Test case name" in short.stdout


@pytest.mark.contract("agent_evals.command.exit_code", "agent_evals.report.json")
def test_service_fails__is_an_error_with_its_words_and_exits_1(project) -> None:
    (project / "suites" / "example.json").write_text(suite("s", case("broken"), case("fine")))
    broken = Answer({"error": {"message": "boom"}}, status=400)
    with model_server(broken, GOOD) as server:
        done = agent_evals(project, "--suite", "example", "-v", server=server)
    assert done.returncode == 1
    first, second = report(project)["suites"][0]["cases"]
    assert (first["status"], first["output"], first["assertionResults"]) == ("error", None, [])
    assert "boom" in first["error"]
    assert second["status"] == "pass"
    assert "1 passed, 0 failed, 1 error (50.0 %)" in done.stdout
    assert re.search(r"^s / broken: .*boom", done.stdout, re.MULTILINE)


@pytest.mark.contract("agent_evals.run.timeout", "agent_evals.field.timeout")
def test_case_times_out__is_an_error_and_nothing_is_waited_for(project) -> None:
    (project / "suites" / "example.json").write_text(suite("s", case("slow", timeout=150), case("fine")))
    with model_server(Answer(GOOD, delay_s=30), GOOD) as server:
        done = agent_evals(project, "--suite", "example", server=server)
    assert done.returncode == 1
    slow, fine = report(project)["suites"][0]["cases"]
    assert (slow["status"], slow["error"]) == ("error", "timeout: no response within 150 ms")
    assert (slow["assertionResults"], fine["status"]) == ([], "pass")


@pytest.mark.contract("agent_evals.command.all", "agent_evals.run.conversation")
def test_all__runs_every_suite_by_name_one_case_at_a_time(project) -> None:
    (project / "suites" / "a-first.json").write_text(suite("z", case("one"), case("two", "other")))
    (project / "suites" / ".hidden.json").write_text("{")
    (project / "suites" / "notes.txt").write_text("no suite")
    with model_server(GOOD) as server:
        done = agent_evals(project, "--suite", "../no", "--all", server=server)
        assert len(server.requests) == 3
        assert all(len(one.body["messages"]) == 2 for one in server.requests)
    assert done.returncode == 1
    found = report(project)
    assert [one["suiteName"] for one in found["suites"]] == ["z", "my-suite"]
    assert [one["summary"]["passed"] for one in found["suites"]] == [1, 1]
    first, second = found["suites"]
    assert first["startedAt"] <= first["completedAt"] <= second["startedAt"] <= second["completedAt"]
    assert second["completedAt"] <= found["generatedAt"]
    assert "3 cases of 2 suites against openai:gpt-5-mini, 1 at a time" in done.stderr


BROKEN = {
    "syntax": ("{", "broken.json:1"),
    "not-a-suite": ('{"name": "package"}', "broken.json:1: not an eval file"),
    "no-cases": ('{"name": "s", "agent": {"name": "A", "model": "m", "instructions": ""}, "cases": []}', "cases"),
    "other-format": ('[{"id": "gs-1", "input": {"message": "x"}, "expect": {}}]', "this eval file has another format"),
    "other-model": (suite("s", case("a"), model="gpt-4o"), '"gpt-4o" is not gpt-5-mini'),
    "unknown-tool": (suite("s", case("a"), tools=["exec"]), "readFile"),
    "same-id-twice": (suite("s", case("a"), case("a")), 'already has the id "a"'),
}


@pytest.mark.contract("agent_evals.command.broken", "agent_evals.command.exit_code", "agent_evals.field.model")
@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN)
def test_all__broken_file__refuses_everything_and_names_it(project, text, said) -> None:
    (project / "suites" / "broken.json").write_text(text)
    with model_server(GOOD) as server:
        done = agent_evals(project, "--all", server=server)
        assert server.requests == []
    assert done.returncode == 2
    assert "suites/broken.json" in done.stderr
    assert said in done.stderr
    assert not (project / "tmp").exists()


WRONG = {
    "nothing": ([], "--suite NAME or --all is required"),
    "all-false": (["--all=false"], "--suite NAME or --all is required"),
    "all-maybe": (["--all=maybe"], "--all must be true or false"),
    "other-report": (["--all", "--report", "xml"], "'xml' is not one of"),
    "extra": (["--suite", "example", "more"], "unexpected extra argument"),
    "unknown-option": (["--all", "--verbos"], "No such option"),
    "misspelt": (["--suite", "exampel"], 'no suite "exampel" in suites (did you mean "example"?)'),
    "with-ending": (["--suite", "example.json"], 'did you mean "example"?'),
    "no-folder": (["--all", "--suites-dir", "none"], "cannot list the suites in none"),
    "missing-suites": (["--all", "--suites-dir", "empty"], "no suites in empty"),
    "no-such-tag": (["--all", "--tag", "none"], "no case selected: none of 1"),
    "no-such-target": (["--all", "--target", "none"], 'the target "none" is not described'),
    "target-and-model": (["--all", "--target", "a", "--model", "b"], "omit one of them"),
    "targets-alone": (["--all", "--targets", "x.yaml"], "--targets needs --target"),
    "twice": (["--all", "--model", "a", "--model", "a"], '"a" is named twice'),
}


@pytest.mark.contract(
    "agent_evals.command.required",
    "agent_evals.command.all",
    "agent_evals.command.exit_code",
    "agent_evals.command.tag",
)
@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_arguments__wrong__exit_2_and_ask_nothing(project, arguments, said) -> None:
    (project / "empty").mkdir()
    with model_server(GOOD) as server:
        done = agent_evals(project, *arguments, server=server)
        assert server.requests == []
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not (project / "tmp").exists()


PATHS_AS_SUITES = [
    *("../outside", "..", "suites/../../outside", "sub/example", "/etc/passwd", "~/x", "C:example", "..\\outside"),
    *("%2e%2e", "..%2foutside", ".", "", " ", "\u2024\u2024/x", "a\u200bb", "\uff0e\uff0e", "example\n", "con", "x."),
    *("sub\\example", "link"),
]


@pytest.mark.contract("agent_evals.command.suite")
@pytest.mark.parametrize("name", PATHS_AS_SUITES, ids=ascii)
def test_suite__name_that_leads_elsewhere__is_refused_and_nothing_is_read(project, name) -> None:
    outside = "this text is nowhere to be seen"
    for place in (project / "outside.json", project / "suites" / "sub" / "example.json"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(outside)
    (project / "suites" / "link.json").symlink_to(project / "outside.json")
    done = agent_evals(project, f"--suite={name}")
    assert done.returncode == 2, done.stdout
    assert "error[suite-not-found]" in done.stderr
    assert outside not in done.stdout + done.stderr
    assert not (project / "tmp").exists()


PATHS_AS_OUT = [
    *("../out", "..", "a/../../out", "a/../b", "/var/out", "~/out", "C:\\out", "..\\out", ".", "", " ", "a\x1bb"),
    *("%2e%2e/out", "\uff0e\uff0e/out", "a/..%2fb", "nul", "x./y"),
]


@pytest.mark.contract("agent_evals.command.out")
@pytest.mark.parametrize("out", PATHS_AS_OUT, ids=ascii)
def test_out__path_that_leads_elsewhere__is_refused_and_nothing_is_written(project, out) -> None:
    before = sorted(project.rglob("*"))
    done = agent_evals(project, "--all", f"--out={out}")
    assert done.returncode == 2, done.stdout
    assert "error[invalid-output-path]" in done.stderr
    assert sorted(project.rglob("*")) == before


@pytest.mark.contract("agent_evals.command.out")
@pytest.mark.parametrize("place", ["tmp", "tmp/x", "tmp/x/y", "tmp/x/y/reports"])
@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_out__link_or_file_on_the_way__is_refused_and_nothing_is_asked(project, place, kind) -> None:
    outside = project / "outside"
    outside.mkdir()
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        (project / place).touch()
    else:
        (project / place).symlink_to(outside if kind == "link" else project / "nowhere")
    with model_server(GOOD) as server:
        done = agent_evals(project, "--all", "--out", "x/y", server=server)
        assert server.requests == []
    assert done.returncode == 2, done.stdout
    assert [*outside.iterdir()] == []
    assert not (project / "nowhere").exists()


@pytest.mark.contract("agent_evals.command.out")
def test_out__folders_below_another_tmp__are_made(project) -> None:
    with model_server(GOOD) as server:
        done = agent_evals(project, "--all", "--tmp-dir", "scratch/t", "--out", "nightly/gpt", server=server)
    assert done.returncode == 0, done.stderr
    assert report(project, "scratch/t/nightly/gpt")["summary"]["passed"] == 1
    run = json.loads((project / "scratch/t/nightly/gpt/latest.json").read_text())
    assert f"result: scratch/t/nightly/gpt/{run['path']}" in done.stdout
    folder = (project / "scratch/t/nightly/gpt" / run["path"]).parent
    assert len((folder / "cases.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
@pytest.mark.contract("agent_evals.command.exit_code")
def test_interrupted__writes_what_is_done_and_exits_by_the_signal(project, number, code) -> None:
    (project / "suites" / "example.json").write_text(suite("s", case("fine"), case("slow"), case("never")))
    with model_server(GOOD, Answer(GOOD, delay_s=60)) as server:
        process = subprocess.Popen(
            [*PROGRAM, "agent-evals", "--all", "--report", "both"],
            cwd=project,
            env=ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner"), "OPENAI_BASE_URL": f"{server.url}/v1"} | KEY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: len(server.requests) >= 2)
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == code, errors
    assert [one["status"] for one in report(project)["suites"][0]["cases"]] == ["pass", "error", "error"]
    assert "1 passed, 0 failed, 2 errors" in output
    assert [path.suffix for path in reports(project)] == [".json", ".md"]


@pytest.mark.contract("agent_evals.files.folder", "agent_evals.run.tool_refused", "agent_evals.file_json_path")
def test_tools__write_read_json_and_delete__work_across_the_cases_of_a_suite(notes) -> None:
    with stand_in() as model:
        done = agent_evals(notes, "--all", "--report", "both", "--verbose", *model)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {one["suiteName"]: one for one in report(notes)["suites"]}
    assert {name: one["summary"]["passed"] for name, one in found.items()} == {"answers": 2, "notes": 5}
    cases = {one["caseId"]: one for one in found["notes"]["cases"]}
    assert cases["read-a-note"]["output"] == "It says: The milk is gone."
    assert cases["stay-inside"]["output"] == "I could not do that. Error: Path traversal is not allowed."
    assert [one["passed"] for one in cases["delete-a-note"]["assertionResults"]] == [True, True]
    # the agents work in tmp/ itself, and what they write stays
    assert sorted(path.name for path in (notes / "tmp").rglob("*.*") if path.parent.name == "notes") == ["list.json"]


@pytest.mark.contract("agent_evals.command.tag", "agent_evals.run.whole_suites")
def test_tag__some_cases__runs_only_these_and_warns_about_files_of_others(notes) -> None:
    with stand_in() as model:
        done = agent_evals(notes, "--all", "--tag", "json", *model)
    assert done.returncode == 0, done.stdout
    found = report(notes)
    assert [case["caseId"] for one in found["suites"] for case in one["cases"]] == ["in-json", "write-json"]
    assert (
        "suites/notes.json: only 1 of 5 cases are selected, so files that the other cases write are missing"
        in done.stdout
    )
    assert "suites/answers.json:" not in done.stdout


@pytest.mark.contract("agent_evals.command.model", "agent_evals.field.model")
def test_model__chosen__answers_whatever_the_suite_names(project) -> None:
    (project / "suites" / "example.json").write_text(suite("s", case("a"), model="gpt-4o"))
    with model_server(GOOD) as server:
        done = agent_evals(project, "--all", "--model", "gpt-5", server=server)
        assert server.asked.body["model"] == "gpt-5"
    assert done.returncode == 0, done.stderr
    assert 'the suite names the model "gpt-4o"; gpt-5 is used instead' in done.stdout


@pytest.mark.contract("agent_evals.command.model")
def test_target__chosen__answers(project) -> None:
    with model_server(GOOD) as server:
        listed = f"targets:\n- {{name: local, provider: openai-compatible, model: tiny, base_url: '{server.url}/v1'}}\n"
        (project / "mine.yaml").write_text(listed)
        done = agent_evals(project, "--all", "--targets", "mine.yaml", "--target", "local")
        assert server.asked.body["model"] == "tiny"
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("names", [["mine"], ["mine", "other"]])
def test_target__function_that_prints__leaves_standard_output_to_the_result(project, names) -> None:
    (project / "talker.py").write_text(
        'print("imported")\n\n\ndef answer(request):\n    print("called")\n    return "ok"\n'
    )
    listed = "".join(f"- {{name: {name}, provider: python, function: 'talker:answer'}}\n" for name in names)
    (project / "targets.yaml").write_text(f"targets:\n{listed}")
    chosen = (word for name in names for word in ("--target", name))
    done = agent_evals(project, "--all", "--targets", "targets.yaml", *chosen)
    assert {"imported", "called"} <= {*done.stderr.splitlines()}
    assert "report" in done.stdout
    assert not {"imported", "called"} & {*done.stdout.splitlines()}


def test_key__missing__is_said_before_anything(project) -> None:
    done = gate(project, "agent-evals", "--all")
    assert done.returncode == 2
    first, place, _ = done.stderr.splitlines()
    assert first.startswith("error[missing-api-key]: no key for openai: neither")
    assert place == "  suites/example.json:16: agent.model"  # and not the sentence once more


@pytest.mark.contract("agent_evals.command.model")
def test_models__several__are_shown_side_by_side_with_a_report_each(notes) -> None:
    with stand_in() as model:
        done = agent_evals(notes, "--all", *model, "--model", "gpt-5-mini", "--model", "forgetful", "--report", "both")
    assert done.returncode == 1, done.stderr
    names = [path.name.split("-")[0] for path in reports(notes)]
    assert (names.count("report"), names.count("matrix")) == (4, 2)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["case", "gpt-5-mini", "forgetful"] in lines
    assert ["≠", "write-a-note", "pass", "fail", "0.50"] in lines
    assert ["in-words", "pass", "pass"] in lines
    assert ["passed", "7", "of", "7", "3", "of", "7"] in lines
    assert "2 targets, 7 cases: 4 differ   exit 1" in done.stdout


@pytest.mark.contract("agent_evals.run.gate")
def test_run__the_same_suites__are_part_of_a_gate_with_a_baseline(notes) -> None:
    with stand_in() as model:
        good = ("run", "suites/notes.json", "suites/answers.json", *model, "--output-dir", "results")
        first = gate(notes, *good, "--model", "gpt-5-mini")
        second = gate(
            *(notes, *good, "--model", "forgetful", "--baseline", "latest", "--fail-on", "regressions"),
            *("--keep-responses", "none", "--concurrency", "4"),
        )
    assert (first.returncode, second.returncode) == (0, 1), first.stderr + second.stderr
    [regressions] = re.findall(r"^REGRESSIONS \(4\).*?\n\n", second.stdout, re.DOTALL | re.MULTILINE)
    assert all(name in regressions for name in ("write-a-note", "read-a-note", "write-json", "delete-a-note"))
    latest = json.loads((notes / "results" / "latest.json").read_text())
    text = (notes / "results" / latest["path"]).read_text()
    results = [
        result["evaluatorProviderRequest"]
        for suite_ in json.loads(text)["suites"]
        for one in suite_["cases"]
        for result in one["evaluatorResults"]
    ]
    assert results
    assert all(request["actual"] is None for request in results)
    journal = (notes / "results" / latest["runId"] / "cases.jsonl").read_text()
    assert "We are open from nine to five" not in text + journal


@pytest.mark.contract("agent_evals.run.gate", "agent_evals.field.model")
def test_run__nobody_chosen__asks_the_suites_own_model_beside_other_evals(project) -> None:
    (project / "evals").mkdir()
    (project / "evals" / "x.golden.json").write_text(
        '[{"id": "gs-1", "input": {"message": "x"}, "expect": {"responseNonEmpty": true}}]'
    )
    (project / "targets.yaml").write_text("targets:\n- {name: mine, provider: mock, response: hello}\n")
    with model_server(GOOD) as server:
        done = gate(project, "run", "evals", "suites", OPENAI_BASE_URL=f"{server.url}/v1", **KEY)
        assert server.asked.body["model"] == "gpt-5-mini"
    assert done.returncode == 0, done.stderr
    found = record(project)
    assert [one["format"] for one in found["suites"]] == ["tool-forge", "agent-evals"]
    assert {target["identity"] for target in found["targets"]} == {"mock:mine", "openai:gpt-5-mini"}


def test_run__suite_that_names_another_model__is_refused_unless_somebody_is_chosen(project) -> None:
    (project / "suites" / "example.json").write_text(suite("s", case("a"), model="gpt-4o"))
    refused = gate(project, "run", "suites", **KEY)
    assert refused.returncode == 2
    assert '"gpt-4o" is not gpt-5-mini, the model of all suites' in refused.stderr
    with model_server(GOOD) as server:
        chosen = ("--provider", "openai", "--model", "gpt-5", "--base-url", f"{server.url}/v1")
        assert gate(project, "run", "suites", *chosen, **KEY).returncode == 0


def test_validate__suites__need_no_key(notes) -> None:
    done = gate(notes, "validate", "suites")
    assert done.returncode == 0, done.stderr
    assert "7 cases in 2 suites: 0 problems, 0 warnings" in done.stdout


def test_help__lists_every_argument_of_the_text(tmp_path) -> None:
    done = gate(tmp_path, "agent-evals", "--help")
    assert done.returncode == 0
    for argument in ("--suite", "--all", "--report <json|md|both>", "--out", "--verbose", "--suites-dir", "--tmp-dir"):
        assert argument in done.stdout


@pytest.mark.contract("agent_evals.run.again")
def test_reruns__case_that_reads_what_another_wrote__is_run_again_behind_it(project) -> None:
    """Run again alone it would look for the note in an empty folder, and fail whatever the agent does."""
    (project / "suites" / "example.json").write_text(
        suite("s", case("write", "Noted", prompt="write"), case("read", "milk", prompt="read"), tools=FILE_TOOLS)
    )
    forgets = False

    async def model(exchange: Exchange) -> None:
        nonlocal forgets
        last = exchange.json["messages"][-1]
        calls = {"write": ("writeFile", {"path": "a.txt", "content": "milk"}), "read": ("readFile", {"path": "a.txt"})}
        if last["content"] == "read" and forgets:
            forgets = False
            exchange.answer(completion("No idea."))
        elif last["role"] == "user":
            exchange.answer(completion(None, calls[last["content"]]))
        else:
            exchange.answer(completion(f"Noted: {last['content']}"))

    with agent(model) as running:
        options = ("run", "suites/example.json", "--base-url", f"{running.url.removesuffix('/chat')}/v1")
        options += ("--provider", "openai-compatible", "--model", "m", "--output-dir", "results")
        first = gate(project, *options, **KEY)
        assert first.returncode == 0, first.stdout + first.stderr
        forgets = True
        before = len(running.requests)
        again = gate(project, *options, "--baseline", "latest", "--reruns", "6", "--fail-on", "regressions", **KEY)
        asked = [one.json["messages"] for one in running.requests[before:]]
    latest = json.loads((project / "results" / "latest.json").read_text())
    found = json.loads((project / "results" / latest["path"]).read_text())
    written, read = found["suites"][0]["cases"]
    assert (written["status"], read["status"]) == ("passed", "passed"), again.stdout
    assert [one["status"] for one in read["trials"]] == ["failed", *["passed"] * read["reruns"]]
    assert (written["reruns"], written["preparatoryExecutions"], len(written["trials"])) == (0, read["reruns"], 1)
    prompts = [one[-1]["content"] for one in asked if one[-1]["role"] == "user"]
    assert prompts == ["write", "read"] * (1 + read["reruns"])
    assert again.returncode == 0, again.stdout + again.stderr
