"""From the pull request to why the third regression failed and what the agent used to say, on GitHub as it is."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest

from eval_gate.model.case import CaseKey
from eval_gate.reports.links import build_anchor
from tests.support.agents import Exchange, agent
from tests.support.browsing import follow
from tests.support.github import sha

FILE = "evals/shop.golden.json"
ASKED = {
    "refund": ("I want my money back for A17.", "14 days"),
    "hours": ("When are you open?", "Sunday"),
    "fax": ("What is your fax number?", "555"),
    "thanks": ("Thank you!", "welcome"),
}
BEFORE = {
    "refund": ("I have refunded order A17. You see it within 14 days.", [("issue_refund", {"orderId": "A17"})]),
    "hours": ("We are open from Monday to Saturday, and on Sunday from 10 to 14.", []),
    "fax": ("Our fax number is 555 17 and it is read every day.", [("find_contact", {"kind": "fax"})]),
    "thanks": ("You are welcome.", []),
}
AFTER = BEFORE | {
    "refund": ("I am sorry, a colleague has to look at that first.", [("escalate", {"reason": "refund"})]),
    "hours": ("We are open from Monday to Saturday.", []),
    "fax": ("Our fax number is 666 17 and it is read every day.", [("find_contact", {"kind": "phone"})]),
}


def answers(said):
    by_question = {ASKED[name][0]: said[name] for name in ASKED}

    async def handler(exchange: Exchange) -> None:
        text, calls = by_question[exchange.json["message"]]
        told = [{"name": name, "params": params, "success": True} for name, params in calls]
        exchange.answer({"response": text, "toolCalls": told})

    return handler


@pytest.fixture
def pull(github, job):
    (job.workspace / "evals" / "weather.golden.json").unlink()
    cases = [
        {"id": name, "input": {"message": question}, "expect": {"responseContains": [wanted]}}
        for name, (question, wanted) in ASKED.items()
    ]
    (job.workspace / FILE).write_text(json.dumps(cases, indent=1))
    return github.state.add_pull(7)


def comment_of(github) -> str:
    (comment,) = github.state.comments.values()
    return comment.body


def test_pull_request__third_regression__its_two_answers_are_one_click_away(job, github, pull) -> None:
    with agent(answers(BEFORE)) as main, agent(answers(AFTER)) as change:
        job.push(main.url)
        ended = job.pull_request(pull, change.url)
    assert ended.code == 1, ended.log
    text = comment_of(github)
    folds = re.findall(
        r"<details><summary>(\w+): evidence and responses</summary>\n\n(.*?)\n\n</details>", text, re.DOTALL
    )
    assert {name for name, _ in folds} == {"refund", "hours", "fax"}
    fold = dict(folds)
    assert "**Prompt:** What is your fax number?" in fold["fax"]
    assert '**Expected:** `response contains "555"`' in fold["fax"]
    assert '**Tool calls:** `find_contact`: `kind` `"fax"` → `"phone"`' in fold["fax"]
    assert "~~~diff\n  Our fax number is\n- 555\n+ 666\n  17 and it is read every day.\n~~~" in fold["fax"]
    assert "called `escalate` instead of `issue_refund`" in fold["refund"]
    # the summary has the same beside its case
    regressions = ended.summary.partition("## Regressions")[2].partition("\n## ")[0]
    assert all(one in regressions for one in ("- 555\n+ 666", "called `escalate` instead of `issue_refund`"))


def test_pull_request__report_and_every_case_in_it__open_by_one_click(job, github, pull) -> None:
    with agent(answers(BEFORE)) as main, agent(answers(AFTER)) as change:
        job.push(main.url)
        ended = job.pull_request(pull, change.url)
    text = comment_of(github)
    (report,) = re.findall(r"\*\*\[Open the report\]\(([^)]+)\)\*\*", text)
    assert report == ended.outputs["report-url"]
    assert follow(github, report).disposition == "inline"
    links = dict(re.findall(r"\[`(\w+)`\]\((\S+#case-[^)]+)\)", text))
    assert set(links) == {"refund", "hours", "fax"}
    for name, link in links.items():
        opened = follow(github, link)
        assert opened.fragment == urlsplit(link).fragment == build_anchor(CaseKey(FILE, name))
        assert name in opened.text


@pytest.mark.slow
def test_pull_request__pushed_again__says_what_the_push_fixed(job, github, pull) -> None:
    better = AFTER | {name: BEFORE[name] for name in ("refund", "hours")} | {"thanks": ("Bye.", [])}
    with agent(answers(BEFORE)) as main, agent(answers(AFTER)) as change, agent(answers(better)) as next_change:
        job.push(main.url)
        job.pull_request(pull, change.url)
        assert "Since your last push" not in comment_of(github)
        pull.head_sha = sha("the second push")
        github.state.add_commit("the second push")
        job.pull_request(pull, next_change.url)
    assert "Since your last push: 2 fixed, 1 new" in comment_of(github)


@pytest.mark.slow
def test_pull_request__the_same_again__says_the_same_but_for_the_last_lines(job, github, pull) -> None:
    with agent(answers(BEFORE)) as main, agent(answers(AFTER)) as change:
        job.push(main.url)
        seen = []
        for push in ("first", "second"):
            pull.head_sha = sha(push)
            github.state.add_commit(push)
            job.pull_request(pull, change.url)
            seen.append(re.sub(r"\]\([^)]*\)", "]", comment_of(github)))  # where links lead is another run's
    first, second = (text.partition("<sub>Evaluated")[0] for text in seen)
    assert first == second
    assert seen[0] != seen[1]
