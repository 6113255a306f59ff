"""Baseline and here in comment and summary: read tests/golden/sides/ as a reviewer would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eval_gate
from eval_gate.model.comparison import RuleCode
from eval_gate.model.conversation import Message
from eval_gate.model.execution import BaselineResult, CaseDetails, Status
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.links import build_anchor
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording import advice_table
from eval_gate.struct import replace
from tests.support.sides import make_asked, make_details, with_before
from tests.support.verdicts import STEADY, make_executed, make_judged
from tests.unit.reports.test_reports_golden import ON_GITHUB, STATES

PAGE = "https://github.com/acme/bot/actions/runs/202/artifacts/404"
ON_PAGE = replace(
    ON_GITHUB,
    page_url=PAGE,
    errors_doc_url="https://github.com/acme/eval-gate/blob/v1/docs/errors.md",
    can_waive_by_comment=True,
)
DOCS = Path(eval_gate.__file__).parents[2] / "docs"
QUESTIONS = {
    "refund/partial": make_asked(
        "I was sent half of order A17, I want it refunded.", "calls issue_refund", 'response contains "14 days"'
    ),
    "refund/expired": make_asked("My order A17 is 30 days old, can I send it back?", 'response contains "14 days"'),
    "faq/hours": make_asked("When are you open?", 'response contains "Sunday"'),
    "faq/fax": make_asked("What is your fax number?"),
}
LABEL = "Please print the label that we have sent to you, put it on the parcel and bring it to any of our shops."
THEN = {
    "refund/partial": (
        "I have refunded 24 EUR for the missing half of order A17. You see it on your account within 14 days.",
        [("lookup_order", {"orderId": "A17"}), ("issue_refund", {"orderId": "A17", "amount": 24})],
    ),
    "refund/expired": (f"You can send goods back within 14 days of their delivery.\n\n{LABEL}", []),
    "faq/hours": ("We are open from Monday to Saturday, 9 to 18, and on Sunday from 10 to 14.", []),
}
HERE = {
    "refund/partial": (
        "I am sorry, I have to pass you to a colleague who can help you.",
        [("lookup_order", {"orderId": "A71"}), ("escalate", {"reason": "refund"})],
    ),
    "refund/expired": (f"You can send goods back within 30 days of their delivery.\n\n{LABEL}", []),
    "faq/hours": ("We are open from Monday to Saturday, 9 to 18.", []),
    "faq/fax": ("", []),
}


def four() -> RunResult:
    """Four regressions: a tool that is not called, a number, a part that is missing, and one whose baseline is gone."""
    cases = [
        make_executed(name, "FFFF", line=14 + 9 * number, text=QUESTIONS[name], details=make_details(*HERE[name]))
        for number, name in enumerate(QUESTIONS)
    ]
    run = make_judged([*cases, make_executed("order/late", "P")], dict.fromkeys([*QUESTIONS, "order/late"], STEADY))
    return with_before(run, THEN | {"faq/fax": None})


def test_comment__both_sides_are_kept__looks_like_this(golden) -> None:
    golden("sides/comment.md", render_comment(build_view(four(), ON_PAGE)))


def test_summary__both_sides_are_kept__looks_like_this(golden) -> None:
    golden("sides/summary.md", render_summary(build_view(four(), ON_PAGE)))


def test_comment__four_regressions_of_one_cause__the_first_stands_for_them() -> None:
    text = render_comment(build_view(four(), ON_PAGE))
    folds = re.findall(r"<summary>(.*): evidence and responses</summary>", text)
    assert folds == [build_view(four(), ON_PAGE).regressions[0].id]


def test_comment__too_long__the_answers_go_first() -> None:
    view = build_view(four(), ON_PAGE)
    whole, shorter = (render_comment(view, start=step) for step in (0, 1))
    assert "responses</summary>" not in shorter
    assert len(DETAIL_LEVELS) > 2
    folds = r"<details><summary>(?:[^<]*: evidence and responses|Evidence of [^<]*)</summary>.*?</details>\n\n"
    assert re.sub(folds, "", whole, flags=re.DOTALL) == re.sub(folds, "", shorter, flags=re.DOTALL)


@pytest.mark.parametrize("step", [0, 1])
def test_comment__regressions__have_their_evidence_the_conclusion_first(step) -> None:
    view = build_view(four(), ON_PAGE)
    text = render_comment(view, start=step)
    assert "Confirmed: failed 4 of 4 here, 0 of 20 on main. Chance without a real change: 1 in " in text
    told = text.partition("<details><summary>Waive")[0]
    assert all(
        re.search(rf"<summary>{row.id}: evidence|`{row.id}`[^|\n]*: Confirmed", told) for row in view.regressions
    )


def test_comment__page_opens_by_a_click__names_lead_there_and_lines_stay_beside_them() -> None:
    view = build_view(four(), ON_PAGE)
    text = render_comment(view)
    assert f"**[Open the report]({PAGE})**" in text
    assert all(f"[`{row.id}`]({PAGE}#{build_anchor(row.key)})" in text for row in view.regressions)
    one = replace(four(), suites=tuple(replace(suite, cases=suite.cases[:1]) for suite in four().suites))
    row = build_view(one, ON_PAGE).regressions[0]
    line = f"https://github.com/acme/bot/blob/9e8d7c6b5a4f/evals/refund.json#L{row.location.line}"
    assert f"({PAGE}#{build_anchor(row.key)}) <sub>[L{row.location.line}]({line})</sub>" in render_comment(
        build_view(one, ON_PAGE)
    )


def test_comment__report_is_an_archive__says_so_and_names_lead_to_lines() -> None:
    text = render_comment(build_view(four(), ON_GITHUB))
    assert f"[Download the report]({ON_GITHUB.report_url}) (a zip)" in text
    assert "[`faq/hours`](https://github.com/acme/bot/blob/9e8d7c6b5a4f/evals/refund.json#L32)" in text
    assert "Open the report" not in text


def test_comment__many_regressions__examples_of_causes_are_links_and_each_cause_has_its_answers() -> None:
    text = render_comment(build_view(STATES["many"], ON_PAGE))
    assert len(re.findall(rf"\[`order/status-\d+`\]\({PAGE}#case-", text.partition("<details>")[0])) == 10
    folds = re.findall(r"<summary>(order/status-\d+): responses</summary>", text)
    assert folds == ["order/status-000", "order/status-119"]


def test_comment__many_regressions__are_all_named() -> None:
    text = render_comment(build_view(STATES["many"], ON_PAGE))
    assert text.count("baseline pass, this PR fail") == 2
    assert all(f"`order/status-{number:03}`" in text for number in range(128))


def render_same_records(*records: str) -> str:
    names = [f"c{number}" for number in range(len(records))]
    run = make_judged(dict.fromkeys(names, "FFF"), dict(zip(names, records, strict=True)))
    return render_comment(build_view(run, ON_GITHUB))


def test_comment__equal_evidence__stands_once() -> None:
    text = render_same_records(*[STEADY] * 5)
    assert "- `c1`, `c2`, `c3`, `c4`: Confirmed: failed 3 of 3 here, 0 of 20 on main. " in text
    assert text.count("20 of 20 pass, this PR 0 of 3 pass") == 1


def inconclusive(*records: str) -> str:
    names = [f"c{number}" for number in range(len(records))]
    return render_comment(
        build_view(make_judged(dict.fromkeys(names, "FPP"), dict(zip(names, records, strict=True))), ON_GITHUB)
    )


def test_comment__equal_evidence_of_other_cases__stands_once_above_the_table() -> None:
    text = inconclusive(*["PPPPPFPPPPPPPPFPPPPP"] * 3)
    assert text.count("failed 1 of 3 here") == 1
    assert re.search(r"\*\*All 3:\*\* `[^`]*` · inconclusive: failed 1 of 3 here, 2 of 20 on main; ", text)


HOSTILE = (
    "```\n~~~~\n~~~diff\n</details><script>x</script> @team #12 GH-3 acme/bot#4 --> <!-- ![i](http://x) \u202e | `a` "
    "::error::x ##[warning]"
)


def assert_hostile_text_is_inert(text: str) -> None:
    """Nothing of `HOSTILE` is more than text: every fence is closed, and outside there is no markup that it brought."""
    assert "\u202e" not in text
    outside, inside = [], None
    for line in text.splitlines():
        if inside is None and line.startswith("~~~"):
            inside = re.match(r"~+", line)[0]
        elif inside is not None and line.strip() == inside:
            inside = None
        elif inside is None:
            outside.append(line)
    assert inside is None
    shown = re.sub(r"<summary>[^<>]*</summary>|(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(outside))
    assert shown.count("</details>") == shown.count("<details>")
    assert not re.search(r"<script|@team|(?<!&)#12|!\[i\]|GH-3", shown)


@pytest.mark.parametrize("size", [1, 20_000])
def test_comment__hostile_answers__stay_in_their_fence(size) -> None:
    answers = [
        (HOSTILE + "x" * size, [(HOSTILE, {HOSTILE: HOSTILE})]),
        ("x" * size + HOSTILE, [(HOSTILE, {"a": HOSTILE})]),
    ]
    case = make_executed(HOSTILE, "FFFF", text=make_asked(HOSTILE, HOSTILE, HOSTILE), details=make_details(*answers[0]))
    run = with_before(make_judged([case], {HOSTILE: STEADY}), {HOSTILE: answers[1]})
    for make in (render_comment, render_summary):
        text = make(build_view(run, ON_PAGE))
        assert len(text) < 20_000
        assert "[U+202E]" in text
        assert_hostile_text_is_inert(text)


def test_comment__nothing_is_kept__has_no_folds() -> None:
    """Where answers are not stored there is nothing to show, and nothing is said about it in every fold."""
    case = make_executed("a", "FFFF", details=make_details(None))
    run = make_judged([case], {"a": STEADY})
    for text in (render_comment(build_view(with_before(run, {"a": (None, [])}), ON_PAGE)),):
        assert "response" not in text.partition("**Next step:**")[0]


def test_comment__the_baseline_kept_no_answer__says_so() -> None:
    case = make_executed("a", "FFFF", details=make_details("an answer"))
    run = with_before(make_judged([case], {"a": STEADY}), {"a": (None, [("lookup", {})])})
    text = render_comment(build_view(run, ON_PAGE))
    assert "The baseline has no stored response." in text
    assert "**Tool calls:** did not call `lookup`" in text
    assert "~~~text\nan answer\n~~~" in text


def test_comment__the_same_state_again__has_the_same_words() -> None:
    """What differs without being news stands in the last lines: what it took, and when that was."""
    first, second = four(), four()
    slower = tuple(
        replace(
            suite,
            cases=tuple(
                replace(
                    case,
                    duration_ms=977.0,
                    cost_usd=0.0123,
                    attempts=2,
                )
                for case in suite.cases
            ),
        )
        for suite in second.suites
    )
    spent = {"total_duration_ms": 9_770.0, "wall_ms": 8_800.0, "estimated_cost_usd": 0.77, "input_tokens": 12}
    second = replace(
        second,
        run_id="22222222-2222-4333-8444-555555555555",
        timestamp="2026-11-22T10:00:00Z",
        suites=slower,
        summary=replace(second.summary, **spent),
    )
    again = replace(ON_PAGE, run_url="https://github.com/acme/bot/actions/runs/203/attempts/1")
    texts = [render_comment(build_view(first, ON_PAGE)), render_comment(build_view(second, again))]
    words = [text.partition("<sub>Evaluated")[0] for text in texts]
    assert words[0] == words[1]
    assert texts[0] != texts[1]


def slug(heading: str) -> str:
    """As GitHub makes it: small letters, no punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def pages() -> set[str]:
    named = {one.target for one in vars(advice_table).values() if isinstance(one, advice_table.DocLink)}
    return named | {f"errors.md#{code}" for code in RuleCode}


@pytest.mark.parametrize("target", sorted(pages()))
def test_explained__every_page__is_there_with_its_heading(target) -> None:
    file, _, heading = target.partition("#")
    text = (DOCS / file).read_text()
    assert heading in {"", *map(slug, re.findall(r"^#+ (.*)$", text, re.MULTILINE))}


@pytest.mark.parametrize(
    ("state", "target"),
    [
        ("few", "verdict.md#what-the-report-says"),
        ("none", None),
        ("none-stale-baseline", "baselines.md#which-baseline-is-used"),
        ("no-baseline", "baselines.md#when-no-baseline-is-found"),
        ("pass-rate", "errors.md#min-pass-rate"),
        ("not-comparable", "baselines.md#setup-changes"),
        ("could-not-decide", None),
        ("report-only", "verdict.md#what-the-report-says"),
    ],
)
def test_explained__state__leads_to_the_page_about_it(state, target) -> None:
    view = build_view(STATES[state], ON_PAGE)
    assert (view.doc_link.target if view.doc_link else None) == target
    text = render_comment(view)
    assert (f"](https://github.com/acme/eval-gate/blob/v1/docs/{target})" in text) is (target is not None)


def test_explained__documentation_is_not_known__there_is_no_link() -> None:
    assert "docs/" not in render_comment(build_view(STATES["few"], ReportContext()))


def make_prompt_change(system: str | None, case: str = "a"):
    """A regression whose model was told this, and whose model in the baseline was told to refund at once."""
    before, here = (
        CaseDetails(conversation=(Message(role="system", content=words), Message(role="user", content="q")))
        for words in ("Be kind. Refund at once.", system or "")
    )
    run = make_judged([make_executed(case, "FFFF", details=here if system else CaseDetails())], {case: STEADY})
    (change,) = run.comparison.changes
    change = replace(change, baseline_result=BaselineResult(status=Status.PASSED, details=before))
    return replace(run, comparison=replace(run.comparison, changes=(change,)))


@pytest.mark.parametrize(
    ("system", "says"),
    [
        ("Be kind. Ask a colleague first.", "`Be kind. Refund at once.` → `Be kind. Ask a colleague first.`"),
        ("Be kind. Refund at once. Say `hello` @team.", "nothing → `Say 'hello' @team.`"),
        ("Be kind. Refund at once.", None),
        (None, None),
    ],
)
def test_comment__system_prompt__is_named_where_it_is_known_to_be_another_one(system, says) -> None:
    view = build_view(make_prompt_change(system), ON_PAGE)
    for text in (render_comment(view), render_comment(view, start=len(DETAIL_LEVELS) - 1), render_summary(view)):
        assert (f"**System prompt changed since the baseline:** {says}" in text) is (says is not None)
        assert ("System prompt" in text) is (says is not None)
