"""The face for Python: the page's own code, a function as the agent, somebody else's process, and a test in pytest."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import eval_gate
from eval_gate import Evaluation, GateError, evaluate, evaluate_async
from tests.support.agents import agent

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
GOOD = {"response": "It is sunny in Lisbon.", "toolCalls": [{"name": "get_weather", "success": True, "params": {}}]}
BAD = {"response": "I cannot say.", "toolCalls": []}


def case(case_id: str, expect: dict) -> dict:
    return {
        "id": case_id,
        "description": case_id,
        "input": {"message": "What is the weather in Lisbon?"},
        "expect": expect,
    }


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with two evals in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals").mkdir()
    cases = [
        case("gs-text-001", {"responseContains": ["sunny"]}),
        case("gs-tools-001", {"toolsCalled": ["get_weather"]}),
    ]
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases))
    return tmp_path


def good(_request) -> dict:
    return GOOD


# --- the page


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_page__every_block_of_it__runs_as_it_stands(here, block, monkeypatch) -> None:
    async def answer(exchange) -> None:
        exchange.answer(GOOD)

    monkeypatch.syspath_prepend(here)
    (here / "my_agent.py").write_text(f"def answer(request):\n    return {GOOD}\n")
    with agent(answer) as running:
        code = block.replace("http://localhost:8000/chat", running.url)
        names: dict = {}
        compiled = compile(code, "docs/python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(compiled, names)
        if inspect.iscoroutine(waiting):
            asyncio.run(waiting)
        for name, value in list(names.items()):
            if name.startswith("test_"):
                value(*[here / "results"] * len(inspect.signature(value).parameters))
    if "result" in names:
        assert names["result"].passed


def test_page__attributes__are_those_of_an_evaluation(here) -> None:
    table = PAGE.partition("| attribute |")[2].partition("\n\n")[0]
    shown = {
        name for cell in re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert shown == {name for name in dir(Evaluation) if not name.startswith("_")}
    assert [key.case_id for key, _ in evaluate("evals", good).run.iter_cases()] == ["gs-text-001", "gs-tools-001"]


def test_page__has_a_block_for_everything_that_is_imported() -> None:
    imported = {name for block in BLOCKS for name in re.findall(r"\w+", block.partition("from eval_gate import")[2])}
    assert set(eval_gate.__all__) - {"Evaluation", "__version__"} <= imported


# --- what comes back


def test_evaluate__a_change_broke_a_case__says_so_in_every_form(here) -> None:
    before = evaluate("evals", good)
    assert before.passed
    assert json.loads(before.record.read_text())["runId"] == before.run.run_id

    after = evaluate("evals", lambda _: BAD, baseline=before.record, fail_on=["regressions"], reports=["html"])
    assert (after.passed, after.exit_code, after.verdict.outcome.value) == (False, 1, "failed")
    assert all(str(after).count(words) == 1 for words in ("REGRESSIONS (2)", "gs-text-001", "gs-tools-001")), str(after)
    assert "gs-tools-001" in after.markdown
    assert after._repr_markdown_() == after.markdown
    assert [file.name for file in after.reports] == ["report.html"]
    assert len(repr(after)) < 3_000


@pytest.mark.parametrize(("said", "passed"), [({}, True), ({"reruns": 0}, False)])
def test_evaluate__case_that_fails_once__is_run_again_with_a_baseline(here, said, passed) -> None:
    before = evaluate("evals", good)
    answers = iter([BAD])
    after = evaluate("evals", lambda one: next(answers, None) or good(one), baseline=before.record, **said)
    assert after.passed == passed, str(after)
    assert ("`reruns` tightened: 12 → 0" in after.markdown) == bool(said), "what a program says stands in a file"


def test_evaluate__run_id_and_latest__are_baselines_as_on_the_command_line(here) -> None:
    first, second = evaluate("evals", good), evaluate("evals", good)
    assert evaluate("evals", lambda _: BAD, baseline="latest").run.baseline_run_id == second.run.run_id
    assert evaluate("evals", good, baseline=first.run.run_id).run.baseline_run_id == first.run.run_id


def test_evaluate__one_eval_file_of_several__is_no_baseline_for_all(here) -> None:
    (here / "evals" / "more.golden.json").write_text(json.dumps([case("m-1", {"responseContains": ["sunny"]})]))
    whole = evaluate("evals", good)
    assert evaluate("evals/more.golden.json", good).run.partial
    assert evaluate("evals", good, baseline="latest").run.baseline_run_id == whole.run.run_id


def test_evaluate__some_cases__are_those_that_are_run(here) -> None:
    found = evaluate(Path("evals"), good, cases=["*-tools-*"])
    assert [key.case_id for key, _ in found.run.iter_cases()] == ["gs-tools-001"]


def test_evaluate__function_that_raises__could_not_decide_and_goes_on(here) -> None:
    def broken(request):
        if request.case_id == "gs-text-001":
            raise KeyError("city")
        return GOOD

    found = evaluate("evals", broken, max_errors=1)
    assert {key.case_id: result.error for key, result in found.run.iter_cases()} == {
        "gs-text-001": "agent error: KeyError: 'city'",
        "gs-tools-001": None,
    }


@pytest.mark.slow
def test_evaluate__plain_function_that_hangs__ends_at_its_time_limit(here) -> None:
    free = threading.Event()

    def hanging(request):
        if request.case_id == "gs-text-001":
            free.wait(60)
        return GOOD

    try:
        found = evaluate("evals", hanging, timeout_ms=1_000)
    finally:
        free.set()
    assert {key.case_id: result.status.value for key, result in found.run.iter_cases()} == {
        "gs-text-001": "error",
        "gs-tools-001": "passed",
    }


def test_evaluate__function_that_says_a_secret__says_it_to_nobody(here, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789abcdefghij")
    found = evaluate("evals", lambda _: {**GOOD, "response": "sunny, says ghs_0123456789abcdefghij"})
    assert found.passed
    assert "ghs_0123456789" not in found.record.read_text()


# --- the configuration


def test_evaluate__configuration_file__counts_below_what_is_given(here, monkeypatch) -> None:
    monkeypatch.setenv("EVAL_GATE_OUTPUT_DIR", "not-read")
    (here / "eval-gate.yaml").write_text("agentEndpoint: http://127.0.0.1:9/chat\noutputDir: kept\ntrials: 2\n")
    found = evaluate("evals", good, config="eval-gate.yaml", trials=1)
    assert found.passed
    assert found.run.target.identity.endswith("test_integration_python.good")
    assert found.record.parent.parent == Path("kept")
    assert all(len(result.trials) == 1 for _, result in found.run.iter_cases())
    assert evaluate("evals", good).record.parent.parent == Path("evals/results"), "a file that nobody named was read"


def test_evaluate__mistakes__are_named_all_at_once_as_they_were_written(here) -> None:
    with pytest.raises(GateError) as caught:
        evaluate("evals", good, fail_onn=["regressions"], trials={1})
    assert [problem.field for problem in caught.value.problems] == ["fail_onn", "trials"]
    (note,) = caught.value.__notes__
    assert 'fail_onn: unknown setting (did you mean "fail_on"?)' in note
    with pytest.raises(GateError) as caught:
        evaluate("evals", good, timeout_ms=-1, pass_score=3)
    assert {problem.field for problem in caught.value.problems} == {"timeout_ms", "pass_score"}


def test_evaluate__two_who_answer__is_refused(here) -> None:
    with pytest.raises(GateError) as caught:
        evaluate("evals", good, model="openai:gpt-5")
    assert caught.value.code == "conflicting-targets"


def test_evaluate__result_that_cannot_be_written__is_no_mistake_of_usage(here) -> None:
    def in_the_way(_request) -> dict:
        (here / "taken.html").mkdir(exist_ok=True)
        return GOOD

    with pytest.raises(GateError) as caught:
        evaluate("evals", in_the_way, reports=["html=taken.html"])
    assert (caught.value.code, caught.value.exit_code) == ("output-not-writable", 3)
    assert [*(here / "evals" / "results").glob("*/run.json")], "the record was taken away"


# --- somebody else's process


def test_evaluate__in_a_running_loop__says_what_to_await_instead(here) -> None:
    async def notebook() -> tuple[str, Evaluation]:
        with pytest.raises(GateError) as caught:
            evaluate("evals", good)
        return caught.value.hint, await evaluate_async("evals", good)

    hint, found = asyncio.run(notebook())
    assert "evaluate_async" in hint
    assert found.passed


def test_evaluate__whose_process_it_is__leaves_signals_and_output_alone(here, capfd) -> None:
    seen = []

    async def answer(_request):
        seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
        return GOOD

    async def notebook() -> None:
        seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
        await evaluate_async("evals", answer)

    asyncio.run(notebook())
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert capfd.readouterr() == ("", "")


def test_evaluate__in_a_thread__works(here) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(evaluate("evals", good)))
    thread.start()
    thread.join(60)
    assert [one.passed for one in found] == [True]


def test_evaluate__progress__is_told_in_lines(here) -> None:
    lines: list[str] = []
    evaluate("evals", good, progress=lines.append)
    assert lines[0].startswith("running 2 cases of 1 suite against python:")
    assert lines[-1].strip() == "2/2"


# --- the package


def test_package__imported__loads_next_to_nothing() -> None:
    code = "import sys; before = set(sys.modules); import eval_gate; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"eval_gate", "__future__"}


def test_package__asked_for_what_it_has_not__says_so() -> None:
    assert set(eval_gate.__all__) <= set(dir(eval_gate))
    with pytest.raises(AttributeError, match="evalute"):
        eval_gate.evalute  # noqa: B018


def test_package__what_type_checkers_see__is_what_there_is() -> None:
    tree = ast.parse(Path(eval_gate.__file__).read_text(encoding="utf-8"))
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"annotations", "import_module"} == set(eval_gate.__all__) - {"__version__"}
    assert Path(eval_gate.__file__).with_name("py.typed").is_file()


# --- in a test


@pytest.mark.slow
def test_pytest__change_that_breaks_a_case__fails_the_test_and_names_it(tmp_path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(ROOT / "examples" / "pytest", folder, ignore=shutil.ignore_patterns("__pycache__"))

    def pytest_run() -> subprocess.CompletedProcess[str]:
        # a place of its own: else it tidies up what other runs of pytest have left on the machine, or are using
        places = ["--rootdir", str(folder), "--basetemp", str(tmp_path / "its own")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *places]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)

    done = pytest_run()
    assert done.returncode == 0, done.stdout + done.stderr
    file = folder / "agent.py"
    file.write_text(file.read_text().replace("is sold out", "will be back"))
    done = pytest_run()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REGRESSIONS (1): gs-stock-002" in done.stdout
