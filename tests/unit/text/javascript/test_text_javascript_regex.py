"""JavaScript's patterns with JavaScript's answers, and a limit on what they may take."""

import asyncio
import time

import pytest

from eval_gate.text.javascript import regex
from eval_gate.text.javascript.regex import (
    MAX_PATTERN,
    MAX_TEXT,
    PatternError,
    PatternMatcher,
    PatternWorkerError,
    find_pattern_problem,
    replace_matches_sync,
)

# what node 20 answers for new RegExp(pattern, flags).test(text); Python's own engine differs in every row
DIALECT = [
    (r"(?<y>\d{4})", "", "in 2026", True),
    (r"(?<y>a)\k<y>", "", "aa", True),
    (r"^a$", "", "a\n", False),
    (r"\d", "", "٣", False),
    (r"\w", "", "é", False),
    (r".", "", "\u2028", False),
    (r"[^]", "", "\n", True),
    (r"[]", "", "a", False),
    (r"\cJ", "", "\n", True),
    (r"\e", "", "e", True),
    (r"[\w-.]", "", "-", True),
    (r"(?<=a+)b", "", "aab", True),
    (r"a{,2}", "", "a{,2}", True),
    (r"\p{L}", "", "p{L}", True),
    (r"^.$", "u", "😀", True),
    (r"A", "i", "a", True),
    (r"b", "y", "ab", False),
    (r"a", "y", "ab", True),
]


def searched(pattern: str, text: str, flags: str = "", **options) -> bool:
    async def main() -> bool:
        matcher = PatternMatcher(**options)
        try:
            return await matcher.search(pattern, text, flags)
        finally:
            await matcher.aclose()

    return asyncio.run(main())


@pytest.mark.contract("responseMatches.dialect")
def test_search__the_dialect__answers_as_javascript_does() -> None:
    async def main() -> list[bool]:
        matcher = PatternMatcher()
        answers = [await matcher.search(pattern, text, flags) for pattern, flags, text, _ in DIALECT]
        await matcher.aclose()
        return answers

    assert asyncio.run(main()) == [expected for *_, expected in DIALECT]


@pytest.mark.parametrize("pattern", ["(?P<y>a)", "(?i)x", "(?>a)", "a++", "(?#c)", "(", "[b-a]"])
def test_search__not_javascript__says_what_the_engine_says(pattern) -> None:
    with pytest.raises(PatternError, match="not a valid pattern: "):
        searched(pattern, "a")


@pytest.mark.parametrize("flags", ["q", "ii", "uv", "gG"])
def test_search__flags_javascript_refuses__are_refused(flags) -> None:
    with pytest.raises(PatternError, match="invalid flags"):
        searched("a", "a", flags)


@pytest.mark.slow
@pytest.mark.contract("responseMatches.guard")
def test_search__runaway_pattern__is_ended_and_the_next_one_answers() -> None:
    async def main() -> float:
        matcher = PatternMatcher(time_limit_s=0.3)
        started = time.monotonic()
        with pytest.raises(PatternError, match=r"took longer than 0\.3 s"):
            await matcher.search("^(a+)+$", "a" * 60 + "!")
        took = time.monotonic() - started
        assert await matcher.search("b", "abc")
        await matcher.aclose()
        return took

    assert asyncio.run(main()) < 10


@pytest.mark.slow
def test_search__event_loop__goes_on_while_a_pattern_runs_away() -> None:
    async def main() -> int:
        matcher = PatternMatcher(time_limit_s=0.5)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        with pytest.raises(PatternError):
            await matcher.search("^(a+)+$", "a" * 60 + "!")
        ticking.cancel()
        await matcher.aclose()
        return ticks

    assert asyncio.run(main()) > 5


@pytest.mark.parametrize(
    ("pattern", "text"), [("x" * (MAX_PATTERN + 1), ""), ("x", "y" * (MAX_TEXT + 1))], ids=["pattern", "text"]
)
def test_search__beyond_the_limits__is_refused_before_anything_starts(pattern, text) -> None:
    with pytest.raises(PatternError, match="characters: at most"):
        searched(pattern, text)


@pytest.mark.parametrize(
    "text", ["\ud800 x", "x\x00", "\u202ex", "x" * 1_000_000], ids=["surrogate", "nul", "bidi", "1M"]
)
def test_search__odd_text__is_searched(text) -> None:
    assert searched("x", text)


@pytest.mark.slow
def test_search__cancelled__leaves_no_answer_behind_for_the_next() -> None:
    async def main() -> bool:
        matcher = PatternMatcher(time_limit_s=5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await matcher.search("^(a+)+$", "a" * 60 + "!")
        found = await matcher.search("zzz", "abc")
        await matcher.aclose()
        return found

    assert asyncio.run(main()) is False


def test_matcher__never_used__starts_no_process() -> None:
    async def main() -> None:
        matcher = PatternMatcher()
        await matcher.aclose()
        assert matcher._worker is None

    asyncio.run(main())


def test_matcher__several_patterns__are_searched_by_one_process_until_it_is_gone() -> None:
    async def main() -> tuple[int, int, int]:
        matcher, numbers = PatternMatcher(), []
        for ended in (False, True, False):
            assert await matcher.search("a", "abc")
            assert matcher._worker is not None
            numbers.append(matcher._worker.pid)
            if ended:
                matcher._worker.kill()
                await matcher._worker.wait()
        await matcher.aclose()
        first, second, third = numbers
        return first, second, third

    first, second, third = asyncio.run(main())
    assert first == second != third


def test_matcher__worker_that_neither_answers_nor_ends__is_killed(tmp_path, monkeypatch) -> None:
    deaf = tmp_path / "python"
    deaf.write_text("#!/bin/sh\nexec sleep 60\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(regex.sys, "executable", str(deaf))
    monkeypatch.setattr(regex, "_START_LIMIT_S", 0.2)
    began = time.monotonic()
    with pytest.raises(PatternWorkerError, match="does not start"):
        asyncio.run(PatternMatcher().search("a", "a"))
    assert time.monotonic() - began < 30


def replaced(patterns: list[str], texts: list[str], **options) -> list[str]:
    async def ask() -> list[str]:
        matcher = PatternMatcher(**options)
        try:
            return await matcher.replace_matches(patterns, texts, "***")
        finally:
            await matcher.aclose()

    return asyncio.run(ask())


@pytest.mark.parametrize("how", [replaced, lambda patterns, texts: replace_matches_sync(patterns, texts, "***")])
def test_replaced__what_patterns_find__is_gone_wherever_it_stands(how) -> None:
    texts = ["a😀b é bb", "", "nothing", "x" * 60_000 + "b", "b"]
    assert how(["b+", "é"], texts) == ["a😀*** *** ***", "", "nothing", "x" * 60_000 + "***", "***"]
    assert how(["b*"], ["abba", ""]) == ["a***a", ""]
    assert how(["b"], []) == []


def test_replaced__pattern_that_backtracks__is_ended() -> None:
    with pytest.raises(PatternError, match="backtracks"):
        replaced(["(a+)+$"], ["a" * 60 + "!"], time_limit_s=0.5)


@pytest.mark.slow
def test_replaced_at_once__pattern_that_backtracks_in_many_portions__takes_the_limit_of_one_pattern() -> None:
    began = time.monotonic()
    with pytest.raises(PatternError, match="took longer than 2 s: the pattern backtracks"):
        replace_matches_sync(["(a+)+$"], ["a" * 60 + "!" + " " * 50_000] * 20, "***")
    assert time.monotonic() - began < 15


def test_replaced_at_once__worker_that_does_not_start__is_an_error_of_the_pattern(monkeypatch) -> None:
    monkeypatch.setattr(regex, "_build_command", lambda: ("/nowhere/python",))
    with pytest.raises(PatternError, match="does not start"):
        replace_matches_sync(["b"], ["b"], "***")


def test_replaced_at_once__within_a_running_loop__is_done() -> None:
    async def ask() -> list[str]:
        return replace_matches_sync(["b"], ["abc"], "***")

    assert asyncio.run(ask()) == ["a***c"]


@pytest.mark.parametrize("pattern", ["(?P<y>a)", "(?i)x", "(?>a)", "a++", "(?#c)", "(", "[b-a]", "(" * 5_000])
def test_pattern_problem__not_javascript__is_what_a_search_says(pattern) -> None:
    with pytest.raises(PatternError) as error:
        searched(pattern, "a")
    assert find_pattern_problem(pattern) == str(error.value)


@pytest.mark.parametrize(
    ("pattern", "flags", "problem"),
    [
        (r"\d+", "", None),
        ("[a\ud800]", "y", None),
        ("(", "", "/(/ is not a valid pattern: Unbalanced parenthesis"),
        ("a", "ii", "/a/ii has invalid flags: each of dgimsuvy at most once, and not u with v"),
        ("a" * 10_001, "", f"/{'a' * 119}…/ has 10,001 characters: at most 10,000"),
    ],
)
def test_pattern_problem__pattern_of_an_author__quotes_it_and_the_engine(pattern, flags, problem) -> None:
    assert find_pattern_problem(pattern, flags) == problem
