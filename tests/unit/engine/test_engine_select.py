"""Which cases are chosen, and that choosing none is a mistake."""

import pytest

from runner.config.settings import Selection
from runner.engine.select import select
from runner.errors import GateError
from runner.model.case import Tier
from tests.support.cases import make_case, make_suite

SUITES = (
    make_suite(make_case("refund/a", tags=("slow",)), make_case("refund/b"), file="one.json"),
    make_suite(make_case("faq/a", tags=("slow", "x")), file="two.json", tier=Tier.LABELED),
)


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        (Selection(), ["refund/a", "refund/b", "faq/a"]),
        (Selection(cases=("refund/*",)), ["refund/a", "refund/b"]),
        (Selection(cases=("refund/b", "faq/a")), ["refund/b", "faq/a"]),
        (Selection(tags=("slow",)), ["refund/a", "faq/a"]),
        (Selection(tiers=("labeled",)), ["faq/a"]),
        (Selection(cases=("refund/*",), tags=("slow",)), ["refund/a"]),
    ],
    ids=str,
)
def test_select__globs_tags_tiers__all_have_to_fit(selection, ids) -> None:
    chosen = select(SUITES, selection)
    assert [case.id for suite in chosen for case in suite.cases] == ids
    assert all(suite.cases for suite in chosen)


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(cases=("refund/c",)), r'nothing matches refund/c \(did you mean "refund/[ab]"\?\)'),
        (Selection(tags=("fast",)), "no case is left of 3: nothing matches fast"),
        (Selection(tiers=("goldn",)), r'"goldn" is not known \(did you mean "golden"\?\)'),
        (Selection(cases=("Refund/*",)), "nothing matches"),
    ],
    ids=str,
)
def test_select__nothing_left__is_an_error(selection, said) -> None:
    with pytest.raises(GateError, match=said):
        select(SUITES, selection)
