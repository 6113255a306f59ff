"""How somebody may accept regressions: the comment on a pull request, and the command on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from eval_gate.gate.must_pass import must_pass_keys
from eval_gate.gate.waivers.command import command_line
from eval_gate.gate.waivers.names import name_problem
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.facts import changes_that_count
from eval_gate.text.globs import escaped
from eval_gate.text.shell import shell_line

MAX_CASES: Final = 10
"""Cases that are offered to be accepted: more than that is seldom meant."""
MAX_COMMAND: Final = 1_500
"""Characters of the command."""
REASON: Final = "<reason>"
"""What is to be replaced by whoever sends it."""
_DAYS: Final = "14d"


def accept_line(run: RunResult, file: str | None) -> str | None:
    """The command that accepts the regressions of a failed run; None without any that it could name.

    One that must pass nobody can accept.

    Its reason is none yet and would be refused: whoever sends it has to give one. `file` is where that is not the
    usual one.
    """
    if run.comparison is None or run.verdict is None or run.verdict.outcome is not Outcome.FAIL:
        return None
    must = must_pass_keys(run, run.policy.must_pass if run.policy else ())
    found = [one for one in changes_that_count(run, CaseClass.REGRESSION) if one.key not in must]
    files = [key.suite for key, _ in run.cases() if key.case_id in {one.case_id for one in found}]
    # an id that other files have too is told apart by its file
    suite = found[0].suite if found and len(files) > len(found) else None
    named = [one.case_id for one in found if suite in (None, one.suite) and name_problem(one.case_id) is None]
    if not named:
        return None
    options = ["--reason", "…", "--until", _DAYS, *(["--suite", escaped(suite)] if suite else [])]
    options += ["--file", file] if file else []
    cases = named[:MAX_CASES]
    if any(case.startswith("-") for case in cases):
        return shell_line(["eval-gate", "accept", *options, "--", *cases])
    return shell_line(["eval-gate", "accept", *cases, *options])


def accept_line_of(key: CaseKey, line: str) -> str | None:
    """The command of `accept_line` for this case alone, whatever file it is from; None where it cannot be named."""
    if name_problem(key.case_id) is not None or "$'" in line:
        return None
    words = shlex.split(line)
    file = words[words.index("--file") + 1 :][:1] if "--file" in words else []
    options = ["--reason", "…", "--until", _DAYS, "--suite", escaped(key.suite), *(["--file", *file] if file else [])]
    return shell_line(["eval-gate", "accept", *options, "--", key.case_id])


def accept_command(cases: Iterable[str], context: ReportContext) -> str | None:
    """The comment for the first of these cases that a command can name; None where nobody could use it."""
    if not context.accept_hint or (context.accept_by_commit and context.head_sha is None):
        return None
    line, named = None, list[str]()
    for case_id in list(dict.fromkeys(cases))[:MAX_CASES]:
        longer = _line([*named, case_id], context)
        if longer is not None and len(longer) <= MAX_COMMAND:
            line, named = longer, [*named, case_id]
    return line


def _line(cases: list[str], context: ReportContext) -> str | None:
    try:
        return command_line(cases, REASON, commit=context.head_sha if context.accept_by_commit else None)
    except ValueError:
        return None
