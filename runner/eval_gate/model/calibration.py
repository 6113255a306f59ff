"""Calibration of LLM judges: agreement with people's labels, and whether it applies to a run."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record

MAX_DIGESTS: Final = 5_000
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]


class JudgeAgreementRecord(Record, kw_only=True):
    """Agreement of one judge with people's labels."""

    judge: Annotated[str, Meta(min_length=1, max_length=1_000)]
    """The judge as the run names it: name, model and address."""
    evaluator: Annotated[str, Meta(max_length=500)] | None = None
    """The evaluator whose scores were compared; None if the results of whole cases were compared."""
    compared_on: date
    """Date of the comparison (UTC)."""
    responses: Annotated[int, Meta(ge=1)]
    """Number of responses with a result from both the judge and people."""
    agreed: Annotated[int, Meta(ge=0)]
    """Number of responses on which the judge and people agree."""
    failed_by_people: Annotated[int, Meta(ge=0)]
    false_passes: Annotated[int, Meta(ge=0)]
    """Number of responses that the judge passed and people failed."""
    prompts: Annotated[tuple[Digest, ...], Meta(max_length=MAX_DIGESTS)] = ()
    """Hashes of the cases' own judge prompts and scripts (`fingerprints.grader`). Empty for the built-in prompt."""
    rubrics: Annotated[tuple[Digest, ...], Meta(max_length=MAX_DIGESTS)] = ()
    """Hashes of the expectations, including rubrics (`fingerprints.expectation`)."""
    run_id: Annotated[str, Meta(max_length=200)] | None = None
    """Id of the run whose responses people labeled."""

    def __post_init__(self) -> None:
        """Refuse counts that contradict each other. Raises ValueError."""
        if self.agreed > self.responses:
            raise ValueError(f"agreed is {self.agreed}, which is more than the {self.responses} answers")
        if self.failed_by_people > self.responses:
            raise ValueError(f"failedByPeople is {self.failed_by_people}, more than the {self.responses} answers")
        if self.false_passes > min(self.failed_by_people, self.responses - self.agreed):
            raise ValueError(
                f"falsePasses is {self.false_passes}, more than failedByPeople or responses - agreed allow"
            )


class CalibrationStatus(StrEnum):
    """Calibration of a judge in a run."""

    COMPARED = "compared"
    """Compared with people's labels, with the prompt and rubrics of this run."""
    OTHER_PROMPT = "other_prompt"
    """Compared with people's labels, but with another prompt or rubric than in this run."""
    OTHER_JUDGE = "other_judge"
    """Only another judge was compared with people's labels."""
    NOT_COMPARED = "not_compared"


class RunJudge(Record, kw_only=True):
    """One judge of a run and its calibration."""

    judge: str
    cases: int
    """Number of cases of the run that the judge scored."""
    calibration: CalibrationStatus = CalibrationStatus.NOT_COMPARED
    agreement: JudgeAgreementRecord | None = None
    """The closest comparison with people's labels; None if no comparison exists."""
    proposed: bool = False
    """The change under test adds a comparison of this judge that the base branch does not have."""


class RunJudges(Record, kw_only=True):
    """Judges of a run, sorted by the number of cases they scored, most first."""

    judges: tuple[RunJudge, ...] = ()
    problem: str | None = None
    """Why the calibration could not be read, in one sentence; None if it could."""
