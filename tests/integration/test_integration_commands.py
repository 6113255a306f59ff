"""Every other command as a person uses it."""

import asyncio
import inspect
import json
import re
import shutil
import subprocess
import sys

import jsonschema
import pytest

from eval_gate.cli.repository.schema import KINDS
from eval_gate.cli.runs import run
from eval_gate.cli.stored_runs import check, compare
from eval_gate.config.setting import Panel
from eval_gate.config.settings import SETTINGS
from tests.integration.test_integration_run import ROOT, fails_on, gate, write_suite
from tests.support.agents import agent, ok
from tests.support.write_schemas import schema_files


def test_help__lists_the_commands_and_the_exit_codes(tmp_path) -> None:
    done = gate(tmp_path, "--help")
    assert done.returncode == 0
    for command in (
        "run",
        "compare",
        "waive",
        "report",
        "view",
        "power",
        "merge",
        "validate",
        "schema",
        "demo",
        "action",
        "publish",
    ):
        assert f"  {command}" in done.stdout
    assert "Exit codes: 0 gate passed" in done.stdout


def test_help__what_a_command_does__is_a_whole_sentence(tmp_path) -> None:
    listed = gate(tmp_path, "--help", COLUMNS="60").stdout.partition("Commands:")[2].partition("Exit codes:")[0]
    assert "..." not in listed
    whole = " ".join(listed.split())
    assert "compare Compare two stored results and decide the gate for the second one, without running" in whole
    assert "promptfoo, pytest, vitest, DeepEval or Inspect, and decide the gate. waive Waive" in whole


@pytest.mark.parametrize("command", ["run", "check", "merge", "waive", "view", "schema"])
def test_help__of_a_command__speaks_of_no_types_and_of_flags_by_their_names(tmp_path, command) -> None:
    shown = gate(tmp_path, command, "--help", COLUMNS="200").stdout
    assert "Arguments:" in shown
    assert "options:" in shown.lower()
    assert [word for word in ("<str>", "<list[str]>", "<int>", "of --targets.") if word in shown] == []


def test_help_all__of_run__names_every_option_once(tmp_path) -> None:
    done = gate(tmp_path, "run", "--help-all", COLUMNS="200")
    assert done.returncode == 0
    for option in ("--agent-endpoint", "--baseline", "--fail-on", "--trials", "--resume", "--report", "--case"):
        assert done.stdout.count(f"{option} ") + done.stdout.count(f"{option},") >= 1
    assert {flag for row in SETTINGS.values() if row.key in run.USED and row.option and (flag := row.flag)} <= {
        "PATHS",
        *re.findall(r"--[a-z-]+", done.stdout),
    }


def test_help__of_run__shows_twenty_options_in_groups_and_counts_the_rest(tmp_path) -> None:
    shown, whole = (
        gate(tmp_path, "run", option).stdout.partition("Arguments:\n") for option in ("--help", "--help-all")
    )
    shown, whole = "".join(shown[1:]), "".join(whole[1:])
    titles = re.findall(r"(?m)^(\S.*):$", shown)
    assert titles == ["Arguments", *(panel.value for panel in Panel), "Other options"]
    listed, every = (re.findall(r"(?m)^  (?:-., )?(--[a-z-]+)", text) for text in (shown, whole))
    assert len(listed) == len(run.COMMON) + len(["--verbose", "--quiet", "--help-all", "--help"])
    assert f"{len(every) - len(listed)} more options: `eval-gate run --help-all` shows them." in shown
    assert "more options" not in whole


@pytest.mark.parametrize("command", [run, check, compare])
def test_help__options_that_it_shows__exist(command) -> None:
    own = inspect.signature(getattr(command, command.__name__.rpartition(".")[2])).parameters
    assert set(command.COMMON) <= set(command.USED) | set(own)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("compare", "{BASELINE} {CURRENT}"), ("merge", "{RESULT}..."), ("report", "{RESULT}"), ("check", "{PATH}...")],
)
def test_help__arguments__have_the_names_of_the_readme_and_are_said_once(tmp_path, command, arguments) -> None:
    usage = gate(tmp_path, command, "--help").stdout.splitlines()[0]
    assert usage == f"Usage: eval-gate {command} [OPTIONS] {arguments}"


def test_help__imports_nothing_heavy() -> None:
    heavy = ("pydantic", "httpx", "aiohttp", "rich", "jinja2", "asyncio", "yaml")
    code = (
        f"import eval_gate.cli.main, eval_gate.cli.program, sys;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_run__against_an_http_agent__imports_no_other_targets_libraries(tmp_path) -> None:
    write_suite(tmp_path, 1)
    code = """
import atexit, sys
heavy = ("mcp", "github", "openai", "anthropic", "google.genai", "pydantic_ai")
heavy += ("rich", "tree_sitter_typescript", "jinja2", "wcwidth")
atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))
from eval_gate.cli.main import main
main()
"""
    with agent() as running:
        done = subprocess.run(
            [sys.executable, "-c", code, "run", "--agent-endpoint", running.url],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT / "runner"), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "[]"


def test_version__is_one_line(tmp_path) -> None:
    done = gate(tmp_path, "--version")
    assert (done.returncode, done.stdout.startswith("eval-gate ")) == (0, True)


def test_validate__good_files__lists_what_was_checked(tmp_path) -> None:
    write_suite(tmp_path)
    done = gate(tmp_path, "validate")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "6 cases in 1 suite: 0 problems, 0 warnings"


def test_validate__nothing_there__says_how_to_begin(tmp_path) -> None:
    done = gate(tmp_path, "validate")
    assert done.returncode == 2
    assert 'there is no "evals"' in done.stderr
    assert "or create some with `eval-gate init`" in done.stderr
    assert "or create some with `eval-gate init`" in gate(tmp_path, "run").stderr


def test_compare__results_of_another_tool__says_who_reads_them(tmp_path) -> None:
    for name in ("before.xml", "now.xml"):
        (tmp_path / name).write_text('<testsuite name="s"><testcase classname="a" name="b"/></testsuite>')
    done = gate(tmp_path, "compare", "before.xml", "now.xml")
    assert done.returncode == 2
    assert "now.xml has results of junit, and `compare` reads stored runs" in done.stderr
    assert "compare them with `eval-gate check now.xml --baseline before.xml`" in done.stderr
    assert "--baseline latest`" in gate(tmp_path, "compare", "latest", "now.xml").stderr
    assert gate(tmp_path, "check", "before.xml").returncode == 0
    assert gate(tmp_path, "check", "now.xml", "--baseline", "latest").returncode == 0
    assert gate(tmp_path, "compare", "latest", "latest").returncode == 0


def test_validate__everything_wrong__is_listed_and_exits_2(tmp_path) -> None:
    write_suite(tmp_path, 1, responseMatches=["("], responseContains=["{{seed:nope}}"], toolParams=[])
    done = gate(tmp_path, "validate", "--targets", "none.yaml")
    assert done.returncode == 2
    assert "none.yaml cannot be read" in done.stderr
    assert "[0].expect.responseMatches[0]: gs-000: /(/ is not a valid pattern" in done.stderr
    assert "warning: evals/weather.golden.json:1: gs-000: {{seed:nope}} not found: no seed manifest " in done.stderr


def test_validate__misspelt_assertion__is_a_warning_and_under_strict_a_problem(tmp_path) -> None:
    write_suite(tmp_path, 1, responseContain=["x"], toolsCalled=[])
    warned = gate(tmp_path, "validate")
    assert (warned.returncode, "warning: " in warned.stderr) == (0, True)
    assert 'did you mean "responseContains"?' in warned.stderr
    assert gate(tmp_path, "validate", "--strict").returncode == 2


@pytest.mark.parametrize("arguments", [("--quiet", "validate"), ("validate", "--quiet")])
def test_quiet__before_or_after_the_command__silences_warnings(tmp_path, arguments) -> None:
    write_suite(tmp_path, 1, responseContain=["x"], toolsCalled=[])
    done = gate(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", KINDS)
def test_schema__each_kind__is_a_json_schema(tmp_path, kind) -> None:
    done = gate(tmp_path, "schema", kind)
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))


def test_schemas__in_the_repository__are_the_newest() -> None:
    for file, text in schema_files().items():
        assert file.read_text(encoding="utf-8") == text, "run: make schemas"


def test_schemas__bundled_evals_and_results__fit_them() -> None:
    schemas = {file.name.split(".")[0]: json.loads(text) for file, text in schema_files().items()}
    weather = ROOT / "examples/weather"
    for file in sorted((weather / "evals").glob("get_*.json")):
        jsonschema.validate(json.loads(file.read_text()), schemas["tool-forge"])
    jsonschema.validate(json.loads((weather / "baseline/run.json").read_text()), schemas["run"])


def test_demo__shows_one_regression_one_new_pass_and_the_comment(tmp_path) -> None:
    done = gate(tmp_path, "demo", "--output-dir", "out")
    assert done.returncode == 0, done.stderr
    for words in (
        "REGRESSIONS (1): ls-get-weather-003",
        "NEW PASSES (1): ls-get-weather-005",
        "⚠ get_weather (labeled): Description hash mismatch (generated: 3fa9c1d2e4b5, current: ",
        "GATE FAILED: 1 case that usually passes failed (limit 0)   exit 1",
        "<!-- eval-gate:v1 key=demo -->",
        "## ❌ Agent eval gate — 1 regression",
        "✅ **1 new pass:** `ls-get-weather-005`",
        "**1 suite is older than the tools or the registry.**",
        "rubric dimensions need a judge",
    ):
        assert words in done.stdout, words
    assert "rerun:" not in done.stdout
    assert list((tmp_path / "out").glob("*/report.html"))


def test_demo__before_the_change__has_no_regression(tmp_path) -> None:
    done = gate(tmp_path, "demo", "--no-regression", "--output-dir", "out")
    assert done.returncode == 0
    assert "GATE PASSED" in done.stdout
    assert "REGRESSIONS" not in done.stdout


def test_run__encoding_without_the_glyphs__is_plain_ascii(tmp_path) -> None:
    write_suite(tmp_path, 1)
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "+ weather golden  1 of 1 pass" in done.stdout


def test_merge__shards_of_a_run__compare_like_the_whole(tmp_path) -> None:
    write_suite(tmp_path, 5)
    with agent(fails_on(3)) as running:
        whole = gate(tmp_path, "run", "--agent-endpoint", running.url, "--output-dir", "whole")
        for part in ("1/2", "2/2"):
            arguments = ("--shard", part, "--output-dir", f"part-{part[0]}", "--fail-on", "never")
            assert gate(tmp_path, "run", "--agent-endpoint", running.url, *arguments).returncode == 0
    assert whole.returncode == 1
    joined = gate(tmp_path, "merge", "part-1", "part-2", "-o", "joined")
    assert (joined.returncode, joined.stderr.strip()) == (0, "2 results merged: 5 cases")
    assert (tmp_path / joined.stdout.strip()).is_file()
    compared = gate(tmp_path, "compare", "whole", "joined", "--fail-on", "regressions")
    assert (
        compared.returncode,
        "4 of 5 pass (baseline: 4 of 5)   1 does not pass (1 still failing)" in compared.stdout,
    ) == (0, True)
    twice = gate(tmp_path, "merge", "part-1", "part-1")
    assert (twice.returncode, "shard 1 of 2 is given 2 times" in twice.stderr) == (2, True)
    half = gate(tmp_path, "merge", "part-1", "-o", "half")
    assert (half.returncode, "shard 2 of 2 is missing" in half.stderr) == (3, True)
    assert gate(tmp_path, "compare", "whole", half.stdout.strip(), "--fail-on", "regressions").returncode == 3


def slow_at(*numbers: int):
    """An agent that takes much longer for these cases."""

    async def handler(exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        await asyncio.sleep(0.4 if number in numbers else 0.01)
        exchange.answer({"response": "ok", "toolCalls": []})

    return handler


@pytest.mark.slow
def test_shards__baseline_knows_what_took_long__are_cut_by_it_and_folders_of_them_are_one_run(tmp_path) -> None:
    write_suite(tmp_path, 6)
    with agent(slow_at(0, 2, 4)) as running:
        asking = ("run", "--agent-endpoint", running.url, "--fail-on", "never")
        assert gate(tmp_path, *asking, "--output-dir", "main").returncode == 0
        for part in range(1, 4):
            arguments = ("--baseline", "main", "--shard", f"{part}/3", "--output-dir", f"parts/job-{part}")
            done = gate(tmp_path, *asking, *arguments)
            assert done.returncode == 0, done.stderr
    records = [json.loads(file.read_text()) for file in sorted(tmp_path.glob("parts/*/*/run.json"))]
    ids = [[case["id"] for suite in record["suites"] for case in suite["cases"]] for record in records]
    slow = {"gs-000", "gs-002", "gs-004"}
    assert [len(slow.intersection(one)) for one in ids] == [1, 1, 1], ids
    assert sorted(name for one in ids for name in one) == [f"gs-{number:03}" for number in range(6)]
    assert gate(tmp_path, "merge", "parts", "-o", "joined").stderr.strip() == "3 results merged: 6 cases"
    assert gate(tmp_path, "compare", "main", "parts").returncode == 0
    shutil.rmtree(tmp_path / "parts/job-2")
    lacking = gate(tmp_path, "compare", "main", "parts")
    assert (lacking.returncode, "hard 2 of 3 is missing" in lacking.stdout) == (3, True), lacking.stdout
    alone = gate(tmp_path, "compare", "main", "parts/job-1")
    assert (alone.returncode, "hards 2 and 3 of 3 are missing" in alone.stdout) == (3, True), alone.stdout


def test_shards__cut_by_other_baselines__are_refused_and_both_are_named(tmp_path) -> None:
    write_suite(tmp_path, 4)
    with agent() as running:
        asking = ("run", "--agent-endpoint", running.url, "--fail-on", "never")
        gate(tmp_path, *asking, "--output-dir", "main")
        gate(tmp_path, *asking, "--baseline", "main", "--shard", "1/2", "--output-dir", "part-1")
        gate(tmp_path, *asking, "--shard", "2/2", "--output-dir", "part-2")
    main = next((tmp_path / "main").glob("*/run.json")).parent.name
    joined = gate(tmp_path, "merge", "part-1", "part-2")
    assert joined.returncode == 2
    assert f"were divided by different durations: the durations of run {main[:8]}, none" in joined.stderr
    assert "give all shards the same eval files, selection and --baseline" in joined.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [("eval-gate ", {"run", "check", "publish"}), ("eval-gate run --rerun-", {"--rerun-interval"})],
)
def test_completion__commands_and_the_options_of_one__are_known_to_a_shell(tmp_path, words, expected) -> None:
    """Only the command that is asked for reads its options: a shell asks without naming one on the command line."""
    asked = {"_EVAL_GATE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert expected <= set(gate(tmp_path, **asked).stdout.split())


def test_command__unknown__is_told_the_nearest_of_all(tmp_path) -> None:
    done = gate(tmp_path, "chekc", "results.xml")
    assert (done.returncode, "Did you mean 'check'?" in done.stderr) == (2, True), done.stderr


def test_merge__ids_of_runs__are_sought_where_results_are_and_only_the_whole_is_written_elsewhere(tmp_path) -> None:
    write_suite(tmp_path, 4)
    (tmp_path / "eval-gate.yaml").write_text("outputDir: out/runs\n")
    with agent(ok) as running:
        for part in ("1/2", "2/2"):
            done = gate(tmp_path, "run", "--shard", part, "--agent-endpoint", running.url)
            assert done.returncode == 0, done.stderr
    first, second = sorted(path.parent.name for path in (tmp_path / "out" / "runs").glob("*/run.json"))
    joined = gate(tmp_path, "merge", first, second, "--output-dir", "joined")
    assert (joined.returncode, joined.stderr.strip()) == (0, "2 results merged: 4 cases")
    assert joined.stdout.startswith("joined/")
    assert not (tmp_path / "evals" / "results").exists()
    beside = gate(tmp_path, "merge", first, second)
    assert beside.stdout.startswith("out/runs/")
    gone = gate(tmp_path, "merge", f"{first[:-1]}x", second, "-o", "joined")
    assert gone.returncode == 2
    assert f'stored result "{first[:-1]}x" not found (did you mean "{first}"?)' in gone.stderr
    assert "give a run id of out/runs, a results file" in gone.stderr


def test_stored_runs__where_the_configuration_keeps_them__are_found_by_every_command_that_reads_them(tmp_path) -> None:
    write_suite(tmp_path, 2)
    (tmp_path / "eval-gate.yaml").write_text("outputDir: out/runs\n")
    with agent(ok) as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
    first, second = [path.parent.name for path in tmp_path.glob("out/runs/*/run.json")]
    for command in (("compare", first, second), ("report", "latest"), ("power",), ("view",)):
        done = gate(tmp_path, *command)
        assert done.returncode == 0, (command, done.stderr)
    assert " in the history" in gate(tmp_path, "drift").stdout + gate(tmp_path, "drift").stderr
    assert gate(tmp_path, "report", "latest", EVAL_GATE_OUTPUT_DIR="elsewhere").returncode == 2
    assert gate(tmp_path, "report", "latest", "--output-dir", "elsewhere").returncode == 2


def test_calibrate__before_the_first_run__says_that_there_is_none_and_what_makes_one(tmp_path) -> None:
    (tmp_path / "labels.csv").write_text("id,status\na,passed\n")
    done = gate(tmp_path, "calibrate", "labels.csv")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error[baseline-not-found]: there is no run in evals/results yet",
        "  hint: start one with `eval-gate run`, or set --output-dir to another folder of runs",
    ]
