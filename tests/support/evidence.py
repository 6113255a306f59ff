"""Runs that are worth a look: questions, answers, calls, judges and executions on both sides."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.case import Location
from eval_gate.model.conversation import Message, ToolCall
from eval_gate.model.execution import CaseDetails, ErrorKind, EvaluatorResult, Status, StoredCall, Trial
from eval_gate.model.result import CaseResult, CaseText, GitFacts, RunResult
from eval_gate.model.usage import Usage
from eval_gate.reports.context import ReportContext
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

PULL_REQUEST = ReportContext(
    name="support",
    comment_key="evals.yml.gate.support",
    repository="acme/bot",
    head_sha="9e8d7c6b5a4f",
    base_branch="main",
    run_url="https://github.com/acme/bot/actions/runs/202/attempts/1",
    baseline_run_url="https://github.com/acme/bot/actions/runs/101",
    can_waive_by_comment=True,
    rerun_command="eval-gate run --config evals/support.yaml --case 'refund/partial-order,faq/hours'",
)
REFUNDS = "evals/refunds.yaml"
FAQ = "evals/faq.yaml"

POLICY = (
    "Refunds are made within 14 days of delivery. The customer does not need to give a reason. Shipping is paid "
    "back only where the whole order is returned; of a partial return the customer "
    "keeps the free shipping they were given.\n"
    "Money goes back the way it came: cards within five working days, invoices within ten.\n"
)
THEN = (
    "Hello Maria,\n\nI have looked at order A-1043. You returned two of the three shirts on 3 November, which is "
    f"within the 14 days, so I have refunded 39.80 EUR to your card.\n\n{POLICY}\n"
    "You will see it within five working days.\n\n"
    "Is there anything else I can do?\n"
)
NOW = (
    "Hello Maria,\n\nI have looked at order A-1043. You returned two of the three shirts on 3 November, which is "
    f"within the 14 days. I have passed your request to a colleague.\n\n{POLICY}\n"
    "They will answer within two working days.\n\n"
    "Is there anything else I can do?\n"
)
LANGUAGES = {
    "arabic": ("مرحبا ماريا، لقد أعدنا المبلغ 39.80 يورو إلى بطاقتك.", "مرحبا ماريا، لقد حولنا طلبك إلى زميل."),
    "hindi": (
        "नमस्ते मारिया, हमने आपके कार्ड पर 39.80 यूरो लौटा दिए हैं।",
        "नमस्ते मारिया, हमने आपका अनुरोध एक सहयोगी को भेज दिया है।",
    ),
    "japanese": ("マリア様、返金39.80ユーロをカードに手配しました。", "マリア様、ご依頼を担当者に転送しました。"),
}


def make_call(name: str, ms: float = 120, *, ok: bool | None = True, result: object = None, **arguments) -> StoredCall:
    """A call with these arguments."""
    return StoredCall(name=name, arguments=arguments, result=result, success=ok, duration_ms=ms)


def make_details(answer: str | None, calls: Sequence[StoredCall] = (), talk: Sequence[Message] = ()) -> CaseDetails:
    """What one execution left."""
    return CaseDetails(
        tools_called=tuple(call.name for call in calls),
        tool_calls=tuple(calls),
        response=answer,
        response_length=len(answer or ""),
        conversation=tuple(talk),
    )


def make_judge(score: float, *, says: str, misses: Sequence[str] = (), hits: Sequence[str] = ()) -> EvaluatorResult:
    """A judge of two members with a prompt."""
    member = EvaluatorResult(name="tone", type="llm_judge", score=1.0, hits=("polite",))
    other = EvaluatorResult(name="facts", type="llm_judge", score=score, misses=tuple(misses))
    return EvaluatorResult(
        name="policy",
        type="composite",
        score=score,
        hits=tuple(hits),
        misses=tuple(misses),
        reasoning=says,
        evaluator_provider_request={
            "model": "gpt-5-mini",
            "systemPrompt": "You are a strict reviewer of refunds.",
            "userPrompt": f"The policy:\n{POLICY}\nWhat was asked, and what was answered, follow.",
        },
        evaluator_results=(member, other),
    )


TALK = (
    Message(role="system", content="You are the support agent of a shop."),
    Message(role="user", content="I sent back two of three shirts. When do I get my money?"),
    Message(role="assistant", content="", tool_calls=(ToolCall(name="lookup_order", params={"order": "A-1043"}),)),
    Message(role="tool", name="lookup_order", content={"order": "A-1043", "items": 3, "returned": 2}),
    Message(role="assistant", content=NOW),
)
LOOKED = make_call("lookup_order", 212, order="A-1043", result={"items": 3, "returned": 2, "paid": "card"})
REFUNDED = make_call("issue_refund", 640, order="A-1043", amount=39.8, currency="EUR", result={"ok": True})
ESCALATED = make_call("escalate", 95, order="A-1043", reason="partial return", ok=False, result="queue is full")
ASKED = CaseText(
    prompt="I sent back two of three shirts of order A-1043. When do I get my money?",
    expectation=("calls issue_refund", 'response contains "39.80"', "policy: the refund is explained"),
)


def make_shown(case_id: str, status: str = "passed", *, file: str = REFUNDS, line: int = 14, **fields) -> CaseResult:
    """A case with a question, two calls and a judge."""
    good = status == "passed"
    calls = (LOOKED, REFUNDED) if good else (make_call("lookup_order", 198, order="A-1043", detail="short"), ESCALATED)
    missed = "no refund was made; the order may be refunded at once"
    judge = make_judge(
        1.0 if good else 0.25, says="The policy is told right." if good else missed, misses=() if good else (missed,)
    )
    called = EvaluatorResult(
        name="issue_refund is called",
        type="tool_called",
        score=float(good),
        hits=("issue_refund was called",) if good else (),
        misses=() if good else ("expected [issue_refund], called [lookup_order, escalate]",),
    )
    values = {
        "description": "a partial return is refunded at once",
        "details": make_details(THEN if good else NOW, calls, TALK),
        "text": ASKED,
        "duration_ms": 2_140.0 if good else 1_730.0,
        "error": None if good else "toolsCalled: expected [issue_refund], called [lookup_order, escalate]",
        "evaluator_results": (called, judge),
        "usage": Usage(input_tokens=1_204, output_tokens=212 if good else 188),
        "cost_usd": 0.0042 if good else 0.0039,
        "judge_cost_usd": 0.0011,
        "location": Location(file=file, line=line),
        "tags": ("refund",) if file == REFUNDS else ("faq", "safety"),
    }
    return make_result(case_id, status, **(values | fields))


def make_trials(letters: str, decisive: int, wrong: Sequence[str]) -> tuple[Trial, ...]:
    """Executions of which each has an answer; that of the decisive one is the case's own."""
    statuses = {"P": Status.PASSED, "F": Status.FAILED, "E": Status.ERROR}
    return tuple(
        Trial(
            status=statuses[letter],
            score=float(letter == "P"),
            duration_ms=1_500 + 210 * place,
            error=None if letter == "P" else "toolsCalled: expected [issue_refund], called [escalate]",
            decisive=place == decisive,
            details=None if place == decisive else make_details(wrong[place % len(wrong)], (LOOKED, ESCALATED)),
        )
        for place, letter in enumerate(letters)
    )


def sixty() -> RunResult:
    """Sixty cases: five regressions (one in three languages each), a new pass, an error, the rest passes."""
    bad = {
        "refund/partial-order": replace(
            make_shown(
                "refund/partial-order",
                "failed",
                reruns=3,
            ),
            trials=make_trials("FFFF", 0, [NOW, NOW.replace("two working days", "three days"), "I do not know."]),
        ),
        **{
            f"refund/{name}": make_shown(
                f"refund/{name}", "failed", line=20 + place, details=make_details(pair[1], (LOOKED, ESCALATED))
            )
            for place, (name, pair) in enumerate(LANGUAGES.items())
        },
        "faq/hours": make_shown(
            "faq/hours",
            "failed",
            file=FAQ,
            details=make_details("We are open from Monday to Saturday, 9 to 18.", ()),
            text=CaseText(prompt="Are you open on Sunday?", expectation=('response contains "Sunday"',)),
            error="responseContains: expected 'Sunday' in response but not found",
            evaluator_results=(),
        ),
    }
    then_of = {
        **{
            f"refund/{name}": {"details": make_details(pair[0], (LOOKED, REFUNDED))} for name, pair in LANGUAGES.items()
        },
        "faq/hours": {
            "details": make_details("We are open from Monday to Saturday, 9 to 18, and closed on Sunday.", ())
        },
    }
    names = [f"order/status-{number:02}" for number in range(53)]
    refunds = [bad[name] for name in bad if name != "faq/hours"]
    orders = [make_shown(name, line=40 + place) for place, name in enumerate(names)]
    broken = make_shown(
        "order/crashes", "error", error="agent error: HTTP 500", error_kind=ErrorKind.AGENT_ERROR, details=CaseDetails()
    )
    new = make_shown("order/split")
    here = [
        make_suite_result([*refunds, *orders], eval_file=REFUNDS, tier=None, tool_name="refunds"),
        make_suite_result([bad["faq/hours"], broken, new], eval_file=FAQ, tier=None, tool_name="faq"),
    ]
    was = [
        make_suite_result(
            [*(make_shown(case.id, **then_of.get(case.id, {})) for case in refunds), *orders],
            eval_file=REFUNDS,
            tier=None,
            tool_name="refunds",
        ),
        make_suite_result(
            [
                make_shown("faq/hours", file=FAQ, **then_of["faq/hours"]),
                make_shown("order/crashes"),
                make_shown("order/split", "failed"),
            ],
            eval_file=FAQ,
            tier=None,
            tool_name="faq",
        ),
    ]
    return with_evidence(make_run(*here), make_baseline_run(*was))


def large(cases: int = 10_000, regressions: int = 500, suites: int = 40) -> RunResult:
    """Many cases, of which the first of each suite are regressions with answers of usual length."""
    per, bad = cases // suites, regressions // suites

    def made(broken: bool) -> list:
        found = []
        for suite in range(suites):
            file = f"evals/area-{suite:02}/support.yaml"
            some = []
            for number in range(per):
                status = "failed" if broken and number < bad + (suite < regressions % suites) else "passed"
                some.append(
                    make_shown(f"area-{suite:02}/case-{number:04} of customers", status, file=file, line=number * 7 + 1)
                )
            found.append(make_suite_result(some, eval_file=file, tier=None, tool_name=f"area-{suite:02}"))
        return found

    return with_evidence(make_run(*made(True)), make_baseline_run(*made(False)), earlier=0)


def with_evidence(now: RunResult, then: RunResult, earlier: int = 19) -> RunResult:
    """The run judged against the other, which is the newest of a branch; each run before it failed a case or two."""
    runs = [then, *(_past(then, number) for number in range(1, earlier + 1))]
    return judge_against(now, Baseline(then, "main", age_days=2, commits_behind=4, history=build_history(tuple(runs))))


_FAILED_THEN = (0, 1, 2, 1, 0, 0, 3, 1, 1, 0, 0, 0, 1, 1, 2, 0, 0, 1, 0, 1)
"""How many cases each run of the branch failed, the newest first."""


def _past(then: RunResult, number: int) -> RunResult:
    suites = []
    for place, suite in enumerate(then.suites):
        failing = {case.id for case in suite.cases[number : number + _FAILED_THEN[number]]} if place == 0 else set()
        cases = [make_shown(one.id, "failed") if one.id in failing else one for one in suite.cases]
        suites.append(make_suite_result(cases, eval_file=suite.eval_file, tier=None, tool_name=suite.tool_name))
    return make_baseline_run(
        *suites,
        run_id=f"{number:02}b7a5e1-0000-4000-8000-000000000000",
        timestamp=f"2026-10-{30 - number:02}T10:00:00Z",
        git=GitFacts(sha=f"{number:02}c1ab00000"),
    )
