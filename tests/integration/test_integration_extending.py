"""What CONTRIBUTING.md says a new dialect, report and source of tools take: one folder or file each, and one row."""

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ROOT, record
from tests.support.agents import agent
from tests.unit.targets.test_targets_contributing import extended

FILES = {
    "formats/riddles/__init__.py": '"""Riddles."""\n',
    "formats/riddles/dialect.py": """
from eval_gate.formats.base import Dialect, Mine
from eval_gate.formats.documents import JSON
from eval_gate.model.case import Aggregation, EvalCase, EvalSuite, Location, SuiteMetadata
from eval_gate.model.conversation import Message
from eval_gate.model.specs.evaluator import ResponseContains


def load(document, positions, source, reading):
    cases = tuple(
        EvalCase(
            id=riddle,
            suite=source.file,
            description=riddle,
            messages=(Message(role="user", content=riddle),),
            evaluators=(ResponseContains(values=(answer,)),),
            aggregation=Aggregation.ALL,
            location=Location(file=source.file, line=positions.find_line(["riddles", riddle])),
            fingerprint=riddle,
        )
        for riddle, answer in document["riddles"].items()
    )
    return EvalSuite(
        file=source.file,
        format="riddles",
        tool_name="walk",
        tier=None,
        metadata=SuiteMetadata(registry_size=2),
        file_hash=source.file_hash,
        cases=cases,
    )


def recognize(document, *, is_named):
    return Mine() if "riddles" in document else None


DIALECT = Dialect(JSON, recognize, load, lambda: {"title": "Riddles"})
""",
    "reports/exports/tap.py": """
def render(run, context):
    lines = [f"{'ok' if case.passed else 'not ok'} {key.case_id}" for key, case in run.iter_cases()]
    return "".join(line + "\\n" for line in [f"1..{len(lines)}", *lines])
""",
    "staleness/lines.py": """
from eval_gate.staleness.tool_registry import ToolDefinition, ToolRegistry


def load_lines(file, shown, root):
    return ToolRegistry(source=shown, tools=tuple(ToolDefinition(name=line) for line in file.read_text().splitlines()))
""",
}
ROWS = {
    "formats/dialect_names.py": ('DIALECT_NAMES: Final = ("agentv", ', '"riddles", '),
    "config/outputs.py": (
        "FORMATS: Final[Mapping[str, OutputFormat]] = {\n",
        '    "tap": OutputFormat("report.tap"),\n',
    ),
    "staleness/registry_loader.py": (
        "FILE_KINDS: tuple[FileKind, ...] = (\n",
        '    FileKind((".txt",), "a .txt file of names", "lines:load_lines"),\n',
    ),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The program with one of each added to it: its files, and a row in its table."""
    runner = tmp_path_factory.mktemp("checkout") / "runner"
    shutil.copytree(ROOT / "runner", runner, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        file = runner / "eval_gate" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for name, (table, row) in ROWS.items():
        file = runner / "eval_gate" / name
        before = file.read_text(encoding="utf-8")
        assert before.count(table) == 1
        file.write_text(before.replace(table, table + row), encoding="utf-8")
    return runner


@pytest.fixture(scope="module")
def ran(package, tmp_path_factory) -> Path:
    """A folder in which a suite of the new dialect was run, with the new registry and the new report."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "evals").mkdir()
    (folder / "evals/sphinx.json").write_text(json.dumps({"riddles": {"all well": "ok", "four legs": "a man"}}))
    (folder / "tools.txt").write_text("walk\ncrawl\n")
    with agent() as sphinx:
        arguments = (
            "--agent-endpoint",
            sphinx.url,
            "--tool-registry",
            "tools.txt",
            "--report",
            "tap",
            "--report",
            "tap=own",
        )
        done = extended(package, folder, "run", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_dialect__one_folder_and_one_row__is_run_and_has_a_schema(package, ran) -> None:
    (suite,) = record(ran)["suites"]
    assert (suite["format"], [case["status"] for case in suite["cases"]]) == ("riddles", ["passed", "failed"])
    assert suite["cases"][1]["location"] == {"file": "evals/sphinx.json", "line": 1}
    assert json.loads(extended(package, ran, "schema", "riddles").stdout)["title"] == "Riddles"


@pytest.mark.slow
def test_report__one_file_and_one_row__is_written_under_its_usual_name_and_under_another(package, ran) -> None:
    said = "1..2\nok all well\nnot ok four legs\n"
    (usual,) = ran.glob("evals/results/*/report.tap")
    assert (usual.read_text(), (ran / "own").read_text()) == (said, said)
    assert extended(package, ran, "report", "latest", "--format", "tap").stdout == said
    assert '"tip" is not known (did you mean "tap"?)' in extended(package, ran, "run", "--report", "tip").stderr


@pytest.mark.slow
def test_registry_source__one_file_and_one_row__is_read_and_named_among_those_that_are_known(package, ran) -> None:
    assert record(ran)["suites"][0]["metadata"]["registrySize"] == 2
    (ran / "tools.py").write_text("")
    refused = extended(package, ran, "validate", "--tool-registry", "tools.py").stderr
    assert "a .txt file of names" in refused
