"""Precedence of results: the identity of a gate and the order of its results.

Two results belong to the same gate if they have the same key and workflow, and both have all cases or both only some.
Among the results of one gate, the head commit takes precedence, then a run with keys over a fork's, then the newer
workflow run, then the later attempt. A superseded result is not published, and never makes a step pass.

Legs of a matrix, calls of one reusable workflow and steps of one job may share a key: then the second one stops.
"""

from __future__ import annotations

from enum import StrEnum

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.result import ResultProducer
from eval_gate.struct import FrozenStruct


class Publisher(StrEnum):
    """Publisher of an earlier result, relative to this step."""

    OURS = "ours"
    """This gate's, from this attempt, an earlier one, or another run."""
    ANOTHER_LEG = "another leg"
    """Of the same run and with the same key, but of another leg, call or step."""
    ANOTHER_GATE = "another gate"


class Publication(FrozenStruct):
    """Published or planned result: its gate, commit and age."""

    maker: ResultProducer
    """The gate, and the run that publishes."""
    sha: str
    source_run: tuple[int, int] | None = None
    """Run and attempt that made the result, where another run publishes it (docs/action.md#forks)."""
    comment_id: int | None = None
    """The comment that shows it, if a check run names one."""

    @property
    def order(self) -> tuple[int, int, int, int]:
        """The place among the results of one gate for one commit: run, attempt, and those that publish it."""
        publishing = (self.maker.run_id, self.maker.attempt)
        return (*(self.source_run or publishing), *publishing)


class NewerResult(FrozenStruct):
    """Newer result that takes precedence over this one."""

    run_id: int
    passed: bool

    @property
    def explanation(self) -> str:
        """Why this gate's result does not count, as a sentence without its full stop."""
        outcome = "passed" if self.passed else "did not pass"
        return f"run {self.run_id} is newer and counts: its gate {outcome}"

    def is_contradicting(self, *, passed: bool) -> bool:
        """Whether the newer result differs from one that `passed`, or did not."""
        return passed is not self.passed

    def build_error(self, *, passed: bool) -> GateError:
        """Build the error to report in place of a result, which `passed` or not, that this newer one supersedes."""
        return GateError(
            "superseded-by-newer-run",
            f"this gate {'passed' if passed else 'did not pass'}, but {self.explanation}",
            f"see run {self.run_id}, or re-run it",
            exit_code=ExitCode.INCOMPLETE,
        )


class NameTakenError(GateError):
    """Error for a name that another leg, call or step of this run already uses."""


def build_name_taken_error(what: str, remedy: str) -> NameTakenError:
    """Build the error for `what` another job or step of this run is called too; `remedy` is the input with the name."""
    message = f"{what} already exists, from another job or step of this run; it was not changed"
    hint = f"give each job or step its own `{remedy}`, in a matrix for example `{remedy}: ${{{{ matrix.NAME }}}}`"
    return NameTakenError("duplicate-gate-name", message, hint)


def classify_publisher(own_producer: ResultProducer, other_producer: ResultProducer) -> Publisher:
    """Classify the producer of another result: this gate, another leg of the run, or another gate.

    Within one attempt job, step and inputs have to be the same. In another attempt the job has another name: there step
    and inputs decide. Between runs all of it may have been edited, and the key decides.
    """
    if other_producer.gate != own_producer.gate:
        return Publisher.ANOTHER_GATE
    own_leg, other_leg = own_producer.leg, other_producer.leg
    if other_producer.run_id != own_producer.run_id or other_leg is None or own_leg is None:
        return Publisher.OURS
    is_same_attempt = other_producer.attempt == own_producer.attempt
    same = other_leg == own_leg if is_same_attempt else is_same_leg(own_producer, other_leg)
    return Publisher.OURS if same else Publisher.ANOTHER_LEG


def is_same_leg(own_producer: ResultProducer, leg: str | None) -> bool:
    """Whether step and inputs are those of this step; also where nothing is known about them."""
    own_leg = own_producer.leg
    return leg is None or own_leg is None or leg.partition("-")[2] == own_leg.partition("-")[2]


def compute_rank(one: Publication, head: str) -> tuple[bool, bool, int, int, int, int]:
    """Compute the precedence of a result among one gate's results; the greatest value takes precedence.

    `head` is the current head commit. For one head, a run with the repository's keys ranks above one that another
    run publishes: anybody can open a pull request of the same commit from a fork.
    """
    return (one.sha == head, one.source_run is None, *one.order)


def is_superseding(other: Publication, own: Publication, head: str) -> bool:
    """Whether the other result takes precedence: of the same gate, and of the head or newer."""
    same = classify_publisher(own.maker, other.maker) is Publisher.OURS
    return same and compute_rank(other, head) > compute_rank(own, head)


def is_of_run(publication: Publication, sha: str, run_attempt: tuple[int, int]) -> bool:
    """Whether the run that made a result has published it for this commit by itself, in this attempt or a later one."""
    by = (publication.maker.run_id, publication.maker.attempt)
    is_own = publication.source_run is None and publication.sha == sha
    return is_own and by[0] == run_attempt[0] and by >= run_attempt
