"""Foreign text stays in its place, whatever it holds."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text import escape

HOSTILE = st.text(alphabet="a1`|~*_[]()<>#@&\\!-+.:\n\r\x1b\u202e\u200b\x00 ", max_size=60) | st.text(max_size=60)


@given(HOSTILE)
def test_code_span__any_text__is_one_span_on_one_line(text) -> None:
    span = escape.format_code_span(text)
    fence = re.match(r"`+", span)[0]
    inside = span[len(fence) : -len(fence)]
    assert "\n" not in span
    assert span.endswith(fence)
    assert fence not in re.findall(r"`+", inside)


@given(HOSTILE)
def test_code_cell__any_text__holds_no_bare_pipe(text) -> None:
    assert not re.search(r"(?<!\\)\|", escape.format_code_cell(text))


@given(HOSTILE)
def test_plain__any_text__holds_nothing_that_is_markdown_or_html(text) -> None:
    shown = re.sub(r"&#\d+;", "", escape.escape_markdown(text))
    assert not re.search(r"[*_`\[\]<>|~#@\\]", shown)
    assert not re.search(r"\w\.[a-z]|://", shown)
    assert not re.match(r"\d+[.)](\s|$)|[-+=]", escape.escape_markdown(text))


@given(HOSTILE.map(lambda text: text + "@team #12 a/b#3 GH-4"))
def test_plain__mentions_and_references__are_none_once_entities_are_characters_again(text) -> None:
    """GitHub looks for them in the finished text (github/markup#1168), so entities alone do not help."""
    for make in (escape.escape_markdown, escape.escape_html):
        finished = html.unescape(make(text, 1_000))
        assert not re.search(r"@\w|#\d|\bGH-\d", finished)


@given(HOSTILE)
def test_block__any_text__cannot_close_its_fence(text) -> None:
    lines = escape.format_code_block(text).split("\n")
    fence = re.match(r"~+", lines[0])[0]
    assert lines[-1] == fence
    assert not any(line.lstrip().startswith(fence) for line in lines[1:-1])


@given(HOSTILE)
def test_html_text__any_text__opens_no_tag(text) -> None:
    assert not re.search(r"[<>\"']", escape.escape_html(text))


@given(HOSTILE)
def test_console_line__any_text__is_one_line_and_no_command(text) -> None:
    line = escape.to_console_line(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e\u200b]", line)
    assert not line.lstrip().startswith("::")
    assert "##[" not in line


@given(HOSTILE, st.integers(min_value=1, max_value=50))
def test_cut__any_text__is_within_the_limit(text, limit) -> None:
    assert len(escape.truncate_text(text, limit)) <= limit
    assert len(escape.truncate_middle(text, limit)) <= limit
    assert len(escape.shorten_error(text, limit)) <= limit


@given(HOSTILE)
def test_comment_key__any_text__cannot_end_the_hidden_comment(text) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]+", escape.to_comment_key(text))
    assert "--" not in escape.to_comment_key(text)
    assert escape.to_comment_key(escape.to_comment_key(text)) == escape.to_comment_key(text)


@pytest.mark.parametrize("text", ["evals.yml.gate", "support-eu", "a_b", "x" * 200])
def test_comment_key__plain_word__is_itself(text) -> None:
    assert escape.to_comment_key(text) == text


@given(HOSTILE, HOSTILE)
def test_comment_key__two_texts__have_two_keys(one, other) -> None:
    assert one == other or escape.to_comment_key(one) != escape.to_comment_key(other) or {one, other} == {"", "default"}


@pytest.mark.parametrize(
    ("function", "text", "shown"),
    [
        (escape.format_code_span, "a`b", "``a`b``"),
        (escape.format_code_span, "`a`", "`` `a` ``"),
        (escape.format_code_span, "", "` `"),
        (escape.format_code_cell, "a|b", "`a\\|b`"),
        (escape.format_code_span, "a\nb", "`a ⏎ b`"),
        (escape.escape_markdown, "@you see #12", "&#64;&#8203;you see &#35;&#8203;12"),
        (
            escape.escape_markdown,
            "acme/bot#7, GH-12, me@x.org",
            "acme/bot&#35;&#8203;7, GH&#45;&#8203;12, me&#64;&#8203;x&#46;org",
        ),
        (escape.escape_markdown, "1.0.0 is not 1. a list", "1.0.0 is not 1. a list"),
        (escape.escape_markdown, "1. a list", "1&#46; a list"),
        (escape.escape_html, "<b>@you #12", "&lt;b&gt;@&#8203;you #&#8203;12"),
        (escape.escape_markdown, "1 case fails (allowed: 0). 95.5 %", "1 case fails (allowed: 0). 95.5 %"),
        (escape.to_console_line, "\x1b[31mred\x1b[0m", "red"),
        (escape.to_console_line, "::error::x", " : :error::x"),
    ],
)
def test_escape__known_text__looks_like_this(function, text, shown) -> None:
    assert function(text) == shown


@pytest.mark.parametrize(
    ("text", "fence"), [("", "~~~"), ("a ~~ b", "~~~"), ("~~~", "~~~~"), ("a\n~~~~~\nb", "~~~~~~")]
)
def test_block__any_text__has_a_fence_longer_than_what_is_in_it(text, fence) -> None:
    assert escape.format_code_block(text) == f"{fence}text\n{text}\n{fence}"
