"""What is known of judges, as this step may repeat it: a pull request only proposes, the base branch's file counts."""

from __future__ import annotations

from functools import cache

from eval_gate.action.plan import Mode
from eval_gate.action.step import Step
from eval_gate.action.trust.base import trusted_branch
from eval_gate.errors import GateError
from eval_gate.gate.judge_comparisons import PATH, AskComparisons, Comparisons, parse_comparisons, read_comparisons
from eval_gate.github.commits import file_at
from eval_gate.github.failure import GitHubError


def comparisons_of(step: Step) -> AskComparisons:
    """Who looks it up, of GitHub only where a judge graded. Raises GateError for a file in the workspace that is wrong.

    Where the base branch's cannot be had, nothing is known, and that is said: it turns no verdict.
    """
    plan = step.plan
    own = () if plan.mode is Mode.RELAY else read_comparisons(step.environment.workspace)
    if plan.base_branch is None:
        return lambda: Comparisons(own)

    @cache
    def ask() -> Comparisons:
        try:
            branch = trusted_branch(step) or ""
            data = file_at(step.client, PATH, branch)
            known = parse_comparisons(data, shown_as=f"{PATH} on {branch}") if data else ()
        except (GitHubError, GateError) as error:
            return Comparisons(trouble=str(error))
        return Comparisons(known, proposed=own)

    return ask
