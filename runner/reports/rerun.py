"""The command that runs only the cases to look at."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from runner.gate.acceptable import judged_as
from runner.model.comparison import CaseClass
from runner.model.grounds import Why
from runner.model.result import RunResult, Status

MAX_RERUN_CASES = 20


def rerun_command(arguments: Sequence[str], result: RunResult) -> str | None:
    """The same command for only the cases to look at; None when there are none."""
    ids = _worth_a_look(result)
    if not ids:
        return None
    kept = _without_option(arguments, "--case", "--resume")
    return shlex.join(["eval-gate", *kept, "--case", ",".join(ids[:MAX_RERUN_CASES])])


def _worth_a_look(result: RunResult) -> list[str]:
    """Regressions, score drops and what could not be decided if there are any, else everything that is no pass.

    What somebody accepted or set aside is not among them.
    """
    waived = result.waiving.keys if result.waiving else frozenset()
    if result.comparison is not None:
        worse = [*result.comparison.of(CaseClass.REGRESSION), *result.comparison.score_drops()]
        worse += [one for one in result.comparison.changes if one.grounds and one.grounds.why is Why.NOT_RERUN]
        if ids := [change.case_id for change in worse if (change.suite, change.case_id) not in waived]:
            return list(dict.fromkeys(ids))
    bad = {Status.FAILED, Status.ERROR}
    return [
        case.id
        for suite in judged_as(result).suites
        for case in suite.cases
        if case.status in bad and (suite.eval_file, case.id) not in waived
    ]


def _without_option(arguments: Sequence[str], *names: str) -> list[str]:
    kept: list[str] = []
    skip_value = False
    for argument in arguments:
        if skip_value:
            skip_value = False
        elif argument in names:
            skip_value = True
        elif not argument.startswith(tuple(f"{name}=" for name in names)):
            kept.append(argument)
    return kept
