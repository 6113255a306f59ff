"""Which cases are chosen, and that choosing none is a mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.selection import Selection
from eval_gate.engine.preparation.case_filter import (
    describe_drafts,
    describe_missed_files,
    leave_out_drafts,
    select_cases,
)
from eval_gate.errors import GateError
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.case import CaseKey, Tier
from eval_gate.model.result import Shard
from eval_gate.struct import replace
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
    chosen = select_cases(SUITES, selection)
    assert [case.id for suite in chosen for case in suite.cases] == ids
    assert all(suite.cases for suite in chosen)


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(cases=("refund/c",)), r'none of 3 matches refund/c \(did you mean "refund/[ab]"\?\)'),
        (Selection(tags=("fast",)), "no case selected: none of 3 matches fast"),
        (Selection(tiers=("goldn",)), r'"goldn" is not known \(did you mean "golden"\?\)'),
        (Selection(cases=("Refund/*",)), "none of 3 matches"),
    ],
    ids=str,
)
def test_select__nothing_left__is_an_error(selection, said) -> None:
    with pytest.raises(GateError, match=said):
        select_cases(SUITES, selection)


DRAFTED = (
    make_suite(make_case("refund/a"), make_case("refund/new", draft=True, tags=("slow",)), file="one.json"),
    make_suite(*(make_case(f"faq/{number}", draft=True) for number in range(22)), file="a b.json"),
)


def test_leave_out_drafts__some_and_all_of_a_file__only_reviewed_cases_stay() -> None:
    [left] = leave_out_drafts(DRAFTED, Selection())
    assert (left.file, [case.id for case in left.cases]) == ("one.json", ["refund/a"])
    assert leave_out_drafts(SUITES, Selection()) == SUITES


def test_describe_drafts__several_files__names_them_up_to_a_bound_and_the_command() -> None:
    one, many = describe_drafts(DRAFTED, Selection())
    assert one == ("one.json: 1 draft was not run: refund/new. Review it with `eval-gate draft --review one.json`")
    assert many.startswith("a b.json: 22 drafts were not run: faq/0, faq/1, ")
    assert many.endswith(" faq/9 and 12 more. Review them with `eval-gate draft --review 'a b.json'`")


@pytest.mark.parametrize(
    ("selection", "files"),
    [
        (Selection(cases=("refund/a",)), []),
        (Selection(cases=("refund/*",)), ["one.json"]),
        (Selection(tags=("slow",)), ["one.json"]),
        (Selection(keys=frozenset({CaseKey("a b.json", "faq/3")})), ["a b.json"]),
    ],
    ids=str,
)
def test_describe_drafts__selection__names_only_what_it_would_have_run(selection, files) -> None:
    assert [said.partition(":")[0] for said in describe_drafts(DRAFTED, selection)] == files


@pytest.mark.parametrize("selection", [Selection(cases=("faq/1",)), Selection(tags=("slow",))], ids=str)
def test_leave_out_drafts__nothing_else_selected__is_an_error_with_their_names(selection) -> None:
    with pytest.raises(GateError, match="everything that is selected is a draft") as caught:
        leave_out_drafts(DRAFTED, selection)
    assert caught.value.code == "only-drafts"
    assert [str(problem) for problem in caught.value.problems] == [*describe_drafts(DRAFTED, selection)]


def test_leave_out_drafts__selection_of_nothing__is_left_to_the_selection() -> None:
    with pytest.raises(GateError, match="no case selected: none of 1 matches zzz"):
        select_cases(leave_out_drafts(DRAFTED, Selection(cases=("zzz",))), Selection(cases=("zzz",)))


AGENT = SuiteAgent(name="a", model="gpt-5-mini", instructions="", tools=("writeFile",))
READING = replace(AGENT, tools=("readFile",))


def sharing(name: str, size: int):
    """A suite whose cases work in one folder."""
    return make_suite(*[make_case(f"{name}-{number}", agent=AGENT) for number in range(size)], file=name)


def part_of(suites, index: int, count: int) -> dict[str, int]:
    """Cases by eval file of one shard; nothing where it has none."""
    try:
        chosen = select_cases(suites, Selection(shard=Shard(index=index, count=count)))
    except GateError:
        return {}
    return {suite.file: len(suite.cases) for suite in chosen}


@pytest.mark.contract("agent_evals.run.whole_suites")
def test_shard__suite_whose_cases_share_files__stays_whole_and_parts_stay_even() -> None:
    suites = [sharing("a", 2), make_suite(*[make_case(f"c{number}") for number in range(5)], file="b"), sharing("c", 3)]
    assert [part_of(suites, index, 2) for index in (1, 2)] == [{"b": 2, "c": 3}, {"a": 2, "b": 3}]
    assert [part_of(suites, index, 4) for index in (1, 2, 3, 4)] == [{"c": 3}, {"a": 2, "b": 1}, {"b": 2}, {"b": 2}]


@given(sizes=st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=5), count=st.integers(1, 6))
def test_shards__suites_of_both_kinds__are_every_case_once(sizes, count) -> None:
    suites = [
        sharing(f"s{number}", size)
        if whole
        else make_suite(*[make_case(f"{number}-{case}") for case in range(size)], file=f"s{number}")
        for number, (size, whole) in enumerate(sizes)
    ]
    parts = [part_of(suites, index, count) for index in range(1, count + 1)]
    for number, (size, whole) in enumerate(sizes):
        dealt = [part.get(f"s{number}", 0) for part in parts]
        assert sum(dealt) == size
        assert not whole or max(dealt) == size
    totals = [sum(part.values()) for part in parts]
    largest = max((size for size, whole in sizes if whole), default=1)
    assert max(totals) - min(totals) <= max(largest, 1)


@pytest.mark.contract("agent_evals.run.whole_suites")
def test_missed_files__some_cases_of_a_suite_that_shares_files__are_warned_about() -> None:
    suites = [sharing("a.json", 3), make_suite(make_case("x"), make_case("y"), file="b.json"), sharing("c.json", 1)]
    chosen = select_cases(suites, Selection(cases=("a.json-1", "x")))
    (warning,) = describe_missed_files(suites, chosen)
    assert warning.startswith("a.json: only 1 of 3 cases are selected, so files that")
    assert describe_missed_files(suites, select_cases(suites, Selection())) == ()
    assert describe_missed_files(suites, select_cases(suites, Selection(cases=("c.json-0",)))) == ()
    assert describe_missed_files(suites, select_cases(suites, Selection(cases=("a.json-0", "a.json-1")))) == ()


@pytest.mark.contract("agent_evals.run.cases_before")
def test_select__cases_that_failed__come_with_those_on_whose_files_they_work() -> None:
    reading = make_suite(make_case("r0", agent=READING), make_case("r1", agent=READING), file="r.json")
    suites = [sharing("a.json", 3), reading, make_suite(make_case("x"), make_case("y"), file="b.json")]
    failed = frozenset({CaseKey("a.json", "a.json-1"), CaseKey("r.json", "r1"), CaseKey("b.json", "y")})
    chosen = select_cases(suites, Selection(keys=failed))
    assert [case.id for suite in chosen for case in suite.cases] == ["a.json-0", "a.json-1", "r1", "y"]
    assert describe_missed_files(suites, chosen) == ()
