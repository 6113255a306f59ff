"""Files of today's AgentV get the scores that AgentV itself gives, or others with a reason: lower ones, but for two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate
from tests.support.agentv_scores import DIFFERENCES, HIGHER, Scored, checkout, given_by_us, recorded

RECORDED = recorded()


def score(project: Path, files: str, code: int) -> dict[str, Scored]:
    targets = ("--targets", ".agentv/targets.yaml", "--concurrency", "4")
    done = gate(project, "run", f"evals/{files}.eval.yaml", *targets, "--output-dir", "results")
    assert done.returncode == code, done.stdout + done.stderr
    return given_by_us(project / "results")


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> dict[str, Scored]:
    return score(checkout(tmp_path_factory.mktemp("grading") / "project"), "*", 1)


@pytest.mark.contract("agentv.today.scores")
def test_today__one_file_that_agentv_graded__has_its_scores(tmp_path: Path) -> None:
    ours = score(checkout(tmp_path / "project"), "fields", 1)
    assert ours
    assert ours == {case: RECORDED[case] for case in ours}


# each case and grader is a program, or two
@pytest.mark.slow
@pytest.mark.contract("agentv.today.scores")
def test_today__cases_that_agentv_graded__are_all_here(ours: dict[str, Scored]) -> None:
    assert set(ours) == set(RECORDED)
    assert DIFFERENCES.keys() | HIGHER.keys() < set(RECORDED)


@pytest.mark.slow
@pytest.mark.contract("agentv.today.scores")
@pytest.mark.parametrize("case", sorted(set(RECORDED) - set(DIFFERENCES) - set(HIGHER)))
def test_today__case_that_agentv_graded__has_its_score(ours: dict[str, Scored], case: str) -> None:
    theirs, own = RECORDED[case], ours[case]
    assert own.score == theirs.score
    assert own.assertions == theirs.assertions or not theirs.assertions  # the default judge is in no list of AgentV's


@pytest.mark.slow
@pytest.mark.contract("agentv.today.scores")
@pytest.mark.parametrize("case", sorted(DIFFERENCES))
def test_today__case_with_another_score__has_a_lower_one_or_is_not_judged(ours: dict[str, Scored], case: str) -> None:
    theirs, own = RECORDED[case], ours[case]
    assert theirs.score is not None
    assert own.score is None or own.score < theirs.score


@pytest.mark.slow
@pytest.mark.contract("agentv.today.scores")
@pytest.mark.parametrize("case", sorted(HIGHER))
def test_today__case_that_agentv_scores_without_its_data__has_a_higher_score(
    ours: dict[str, Scored], case: str
) -> None:
    theirs, own = RECORDED[case], ours[case]
    pairs = list(zip(theirs.assertions, own.assertions, strict=True))
    assert {one for one, other in pairs if one != other} == {0.0}
    assert own.score == 1.0
