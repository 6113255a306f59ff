"""How well a judge is known, as data: what people's labels said of it, and what that is worth for one run."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record

MAX_DIGESTS: Final = 5_000
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]


class JudgeAgreementRecord(Record, kw_only=True):
    """What came of holding one judge's verdicts against people's labels."""

    judge: Annotated[str, Meta(min_length=1, max_length=1_000)]
    """Who graded, as the run has it: name, model and address."""
    evaluator: Annotated[str, Meta(max_length=500)] | None = None
    """Only what this evaluator said was compared; None for the verdicts of the cases."""
    compared_on: date
    """The day (UTC) on which it was compared."""
    responses: Annotated[int, Meta(ge=1)]
    """Answers that both have judged."""
    agreed: Annotated[int, Meta(ge=0)]
    """Of these, of how many both said the same."""
    failed_by_people: Annotated[int, Meta(ge=0)]
    false_passes: Annotated[int, Meta(ge=0)]
    """Answers that the judge passed and people failed."""
    prompts: Annotated[tuple[Digest, ...], Meta(max_length=MAX_DIGESTS)] = ()
    """The own prompts and scripts of the cases (`yardstick.grader`); none for the built-in prompt."""
    rubrics: Annotated[tuple[Digest, ...], Meta(max_length=MAX_DIGESTS)] = ()
    """What the answers were held against (`yardstick.expectation`), rubrics among it."""
    run_id: Annotated[str, Meta(max_length=200)] | None = None
    """The run whose answers people looked at."""

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
    """What is known of a judge."""

    COMPARED = "compared"
    """It was compared with people, as it grades here."""
    OTHER_PROMPT = "other_prompt"
    """It was, with another prompt or rubric than it has here."""
    OTHER_JUDGE = "other_judge"
    """Only another judge was."""
    NOT_COMPARED = "not_compared"


class RunJudge(Record, kw_only=True):
    """One judge of a run, and what is known of it."""

    judge: str
    cases: int
    """How many cases of the run it graded."""
    calibration: CalibrationStatus = CalibrationStatus.NOT_COMPARED
    agreement: JudgeAgreementRecord | None = None
    """The comparison that comes nearest; None where there is none."""
    proposed: bool = False
    """The change under test brings a comparison of it, which the base branch does not have."""


class RunJudges(Record, kw_only=True):
    """Who graded in a run, those first who graded most."""

    judges: tuple[RunJudge, ...] = ()
    problem: str | None = None
    """Why nobody could look up what is known, in one sentence; None where somebody could."""
