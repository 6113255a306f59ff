"""The file of comparisons: what is written is what is read, and bounds hold."""

from datetime import date

import msgspec
import pytest

from eval_gate.errors import GateError
from eval_gate.gate.judge_agreement import MAX_JUDGES, merge_comparisons, parse_comparisons
from eval_gate.model.calibration import JudgeAgreementRecord


def compared(judge: str = "j", **facts) -> JudgeAgreementRecord:
    said = {"compared_on": date(2026, 11, 2), "responses": 5, "agreed": 4, "failed_by_people": 2, "false_passes": 1}
    return JudgeAgreementRecord(judge=judge, **(said | facts))


def test_written__read_again__is_the_same() -> None:
    one, other = compared("a", prompts=("0" * 16,)), compared("b", evaluator="tone", run_id="r")
    found = parse_comparisons(merge_comparisons([other], [one]).encode(), shown_as="f")
    asdict = msgspec.structs.asdict
    assert [asdict(each) for each in found] == [asdict(one), asdict(other)]


def test_written__same_judge_and_evaluator__the_new_one_stays() -> None:
    found = parse_comparisons(
        merge_comparisons([compared(agreed=4)], [compared(agreed=5, false_passes=0)]).encode(), shown_as="f"
    )
    assert [one.agreed for one in found] == [5]


def test_written__too_many__is_refused() -> None:
    with pytest.raises(GateError, match="not valid"):
        merge_comparisons([compared(str(number)) for number in range(MAX_JUDGES + 1)], [])


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ('"responses": 5, "agreed": 6, "failedByPeople": 0, "falsePasses": 0', "more than the 5 answers"),
        ('"responses": 5, "agreed": 5, "failedByPeople": 6, "falsePasses": 0', "more than the 5 answers"),
        ('"responses": 5, "agreed": 5, "failedByPeople": 2, "falsePasses": 1', "responses - agreed allow"),
        ('"responses": 5, "agreed": 3, "failedByPeople": 1, "falsePasses": 2', "failedByPeople"),
    ],
)
def test_counts__contradict_each_other__are_refused_with_their_place(facts, words) -> None:
    data = f'{{"judges": [\n{{"judge": "j", "comparedOn": "2026-11-02", {facts}}}]}}'.encode()
    with pytest.raises(GateError) as caught:
        parse_comparisons(data, shown_as="f.json")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.field) == ("f.json", 2, "judges[0]")
    assert words in problem.message
