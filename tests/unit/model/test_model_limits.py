"""There is one table of bounds: the page shows it, and no module has a bound of its own for what it reads."""

import ast
import re
from pathlib import Path

import pytest

import eval_gate
from eval_gate.model import limits
from tests.support.write_limits import PAGE, page

SOURCES = sorted(Path(eval_gate.__file__).parent.rglob("*.py"))
READING = re.compile(
    r"_?(MAX|MOST|LARGEST)_(\w+_)?(BYTES|VALUES|ENTRIES|DEPTH|DIGITS|OUTPUT|REPLY|EVENTS|MESSAGES|CALLS|FILES|PAGES)"
    r"|(\w+_)?(TIME_LIMIT|TIMEOUT)(_S)?"
)
OTHERS = {
    "cli/starter/folder_contents.py: MAX_FILES": "what `init` looks at in the repository of who called it",
    "cli/starter/file_writer.py: MAX_BYTES": "the same",
    "cli/starter/openapi.py: _MAX_DEPTH": "parts of a description that `init` looks at",
    "cli/starter/response_places.py: _MAX_DEPTH": "places of a response that `init` shows",
    "cli/starter/probe.py: TIMEOUT_S": "how long `init` waits for the agent of who called it",
    "cli/starter/agent_routes.py: TIMEOUT_S": "the same",
    "external_results/promptfoo.py: _MAX_CACHED_BYTES": "what is remembered of what was read",
    "files/reading.py: MAX_POINTER_BYTES": "a format of Git LFS",
    "formats/outlines.py: _MAX_EVENTS": "the beginning of a file, by which it is recognized",
    "formats/outlines.py: _MAX_DEPTH": "the same",
    "formats/outlines.py: _MAX_LINES": "the same",
    "formats/agentv/guidelines.py: MAX_FOLDER_DEPTH": "folders above a file of the repository",
    "formats/agentv/v4/case_files.py: MAX_SEARCHED_FILES": "files of a folder of the repository, not what is in them",
    "reports/console/case_list.py: MAX_NAMED_CALLS": "what is shown of an answer",
    "drafts/review.py: _MAX_CALLS": "what is shown of an answer",
    "gate/setup_comparison.py: MAX_NAMED_FILES": "what is shown of a setup change",
    "results/run_reader.py: _MAX_HEAD_BYTES": "the beginning of a file, by which it is recognized",
    "results/run_times.py: _MAX_POINTER_BYTES": "what we write",
    "results/run_writer.py: _MAX_STEM_BYTES": "what we write",
    "session/evaluated_commit.py: MAX_NUMBER_DIGITS": "a number of a workflow's environment",
    "text/untrusted/excerpt.py: MAX_EVENTS": "what is shown of an answer",
    "text/untrusted/excerpt.py: _MAX_BYTES": "what is shown of an answer",
    "evaluators/tool_forge/rubric.py: MAX_CALLS": "what a judge is shown of an answer",
    "github/commits.py: MAX_CHANGED_FILES": "GitHub's own, for what it lists",
    "github/client.py: REQUEST_TIMEOUT_S": "one try of what GITHUB_S bounds as a whole",
    "targets/vscode/dispatcher.py: MAX_FILES": "what we write",
    "github/workflow_environment.py: MAX_DIGITS": "a number of a workflow's environment",
    "github/runner_files.py: MAX_SUMMARY_BYTES": "GitHub's own, for what we write",
    "github/runner_files.py: MAX_DEPTH": "folders of ours that are handed back",
    "github/artifacts/artifact_service.py: TIMEOUT_S": "GitHub's answer to what we send",
    "reports/exports/junit.py: MAX_OUTPUT": "what is shown of an answer",
    "targets/command/codex_log.py: MAX_BYTES": "what we write",
    "targets/model/target.py: MAX_CALLS": "a rule of the format",
    "targets/vscode/target.py: DEFAULT_TIMEOUT_S": "a default that a target may change",
    "reports/page/case_data.py: MAX_DEPTH": "what is shown of a call",
    "reports/page/truncation.py: MAX_PAGE_BYTES": "what we write",
    "reports/page/truncation.py: MAX_PLAIN_BYTES": "the same",
    "reports/page/truncation.py: MAX_UNPACKED_BYTES": "the same",
    "reports/view/groups.py: MAX_VALUES": "what is shown of a cause",
    "reports/view/response_comparison.py: MAX_CALLS": "what is shown of an answer",
    "reports/view/response_comparison.py: MAX_DEPTH": "what is shown of a call",
    "reports/view/response_comparison.py: MAX_VALUES": "what is shown of a call",
    "text/javascript/regex.py: _MAX_REPLY": "our own worker",
    "text/tokens.py: _MAX_DIGITS": "an index, beyond which there is nothing",
}


def literals(file: Path) -> list[str]:
    """The constants of a module with a number of their own."""
    found = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            found.append(target.id)
    return found


def test_page__of_limits__is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_table__names_every_bound_of_its_module() -> None:
    source = Path(limits.__file__).read_text(encoding="utf-8")
    rows = re.findall(r'^(?:(\w+): Final = )?_[A-Z]+\.add\((?:"[^"]*", ([A-Z_]+),)?', source, re.MULTILINE)
    shown = {name for row in rows for name in row if name}
    made = {name for name in vars(limits) if name.isupper() and isinstance(getattr(limits, name), int | float)}
    assert made == shown


@pytest.mark.slow
def test_bounds__of_what_is_read__stand_nowhere_else() -> None:
    root = Path(eval_gate.__file__).parent
    scattered = {
        f"{file.relative_to(root)}: {name}"
        for file in SOURCES
        if file != Path(limits.__file__)
        for name in literals(file)
        if READING.fullmatch(name)
    }
    assert scattered - set(OTHERS) == set()


@pytest.mark.parametrize("row", [row for rows in limits.TABLE.values() for row in rows], ids=lambda row: row.what)
def test_table__every_row__is_a_bound(row) -> None:
    assert row.limit > 0
    assert row.what[0].islower() or row.what.split()[0].isupper() or row.what.startswith(("Agent", "MCP"))
    assert row.unit
