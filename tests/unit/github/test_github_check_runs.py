"""Check runs: annotations in order, once, within GitHub's limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.github.check_runs import (
    MAX_TEXT,
    Annotation,
    AnnotationLevel,
    CheckConclusion,
    CheckContent,
    write_check,
)
from eval_gate.github.client import GitHubClient
from eval_gate.github.failure import GitHubError
from eval_gate.struct import replace
from eval_gate.text.secret import Secret
from tests.support.github import Fault, fake_github
from tests.support.sizes import size


def annotations(count: int) -> tuple[Annotation, ...]:
    return tuple(Annotation("evals/a.json", n + 1, AnnotationLevel.FAILURE, f"case {n}", "why") for n in range(count))


@pytest.fixture
def draft(github) -> CheckContent:
    return CheckContent(
        name="eval-gate",
        head_sha=github.state.branches["main"],
        conclusion=CheckConclusion.FAILURE,
        title="1 regression",
        summary="words",
        text="page",
        details_url="https://github.com/acme/bot/actions/runs/1/attempts/1",
        external_id="gate.1.1",
    )


def the_check(github):
    (found,) = github.state.check_runs.values()
    return found


@pytest.mark.parametrize("count", [0, 1, 10, 50])
def test_check__annotations__all_are_there_in_order(github, client, draft, count) -> None:
    written = write_check(client, replace(draft, annotations=annotations(count)))
    check = the_check(github)
    assert [one["title"] for one in check.annotations] == [f"case {n}" for n in range(count)]
    assert [one["start_line"] for one in check.annotations] == [one["end_line"] for one in check.annotations]
    # more than fifty at once would be a violation, which the fixture looks for
    assert (written.id, written.html_url) == (check.id, f"{github.base}/acme/bot/runs/{check.id}")


def test_check__written__says_everything_and_is_completed_at_once(github, client, draft) -> None:
    write_check(client, replace(draft, annotations=annotations(10)))
    fields = the_check(github).fields
    assert (fields["status"], fields["conclusion"], fields["external_id"]) == ("completed", "failure", "gate.1.1")
    assert fields["output"] == {"title": "1 regression", "summary": "words", "text": "page"}
    assert fields["details_url"] == draft.details_url


def test_check__no_page__has_none(github, client, draft) -> None:
    write_check(client, replace(draft, text=""))
    assert "text" not in the_check(github).fields["output"]


def test_conclusions__none_but_neutral__satisfies_a_required_check_without_a_pass() -> None:
    assert {one.value for one in CheckConclusion} == {"success", "neutral", "failure", "cancelled"}


def test_check__answer_lost__is_found_again_with_its_annotations(github, client, draft) -> None:
    github.faults.add("POST", "/check-runs$", Fault.reset_after_write())
    written = write_check(client, replace(draft, annotations=annotations(10)))
    assert written.id == the_check(github).id
    assert [one["title"] for one in the_check(github).annotations] == [f"case {n}" for n in range(10)]


def test_check__answer_lost_among_others_of_the_same_name__ours_is_told_by_its_mark(github, client, draft) -> None:
    other = write_check(client, replace(draft, external_id="gate.2.1"))
    github.faults.add("POST", "/check-runs$", Fault.reset())
    ours = write_check(client, draft)
    assert ours.id != other.id
    assert sorted(one.fields["external_id"] for one in github.state.check_runs.values()) == ["gate.1.1", "gate.2.1"]


def test_check__answer_lost_and_somebody_wrote_a_newer_one_meanwhile__ours_is_found_behind_it(
    github, client, draft
) -> None:
    newer = write_check(client, replace(draft, external_id="gate.2.1"))
    check = github.state.check_runs.pop(newer.id)
    check.id = 10**9
    github.state.check_runs[check.id] = check
    github.faults.add("POST", "/check-runs$", Fault.reset_after_write())
    assert write_check(client, draft).external_id == "gate.1.1"
    assert len(github.state.check_runs) == 2


def test_check__name_with_any_letters__is_found_again_after_a_lost_answer(github, client, draft) -> None:
    github.faults.add("POST", "/check-runs$", Fault.reset_after_write())
    write_check(client, replace(draft, name="gate & more = 100% / ü #1"))
    assert the_check(github).fields["name"] == "gate & more = 100% / ü #1"


def test_check__commit_is_gone__is_said_with_its_name(client, draft) -> None:
    with pytest.raises(GitHubError, match=r"writing the check eval-gate: .*No commit found"):
        write_check(client, replace(draft, head_sha="f" * 40))


@pytest.mark.parametrize("sign", ["x", "界", "🌦"])
def test_check__texts_longer_than_github_takes__are_cut_to_what_it_takes(github, client, draft, sign) -> None:
    """The title of an annotation is a case's id: at most 255 characters, its message at most 64 KB."""
    long = Annotation("evals/a.json", 1, AnnotationLevel.WARNING, sign * 300, sign * 100_000)
    write_check(
        client, replace(draft, title=sign * 300, summary=sign * 70_000, text=sign * 70_000, annotations=(long,))
    )
    check = the_check(github)
    assert len(check.fields["output"]["summary"]) <= MAX_TEXT
    assert len(check.fields["output"]["text"]) <= MAX_TEXT
    assert len(check.fields["output"]["title"]) <= 80
    assert len(check.annotations[0]["message"].encode()) <= 65_536


TEXT = st.text(min_size=1, max_size=60) | st.sampled_from(["::error::x", "\x00", "\u202e", "@team", "a\nb", "\ufffd"])


@pytest.mark.slow
def test_check__any_texts__are_taken_as_they_are() -> None:
    with fake_github() as github:
        client = GitHubClient(github.base, Secret(github.token), "acme/bot")
        sha = github.state.branches["main"]

        @settings(max_examples=size(40))
        @given(title=TEXT, summary=TEXT, text=TEXT, remark=TEXT, path=TEXT)
        def taken(title, summary, text, remark, path) -> None:
            github.state.check_runs.clear()
            remarks = (Annotation(path, 1, AnnotationLevel.WARNING, remark, remark),)
            check = CheckContent(
                "c", sha, CheckConclusion.SUCCESS, title, summary, text, "https://x.test", "id", remarks
            )
            write_check(client, check)
            made = the_check(github)
            assert made.fields["output"] == {"title": title, "summary": summary, "text": text}
            assert (made.annotations[0]["path"], made.annotations[0]["message"]) == (path, remark)

        taken()
        client.close()
        assert github.violations == []
