"""Ids and addresses of traces: which are stored, and which become links."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.execution import CaseDetails
from eval_gate.text.trace_addresses import build_trace_url, clean_trace, parse_trace_template

TEMPLATE = "https://traces.example/p/{{traceId}}/spans"
LONG = "https://traces.example/".ljust(2000, "x")


def test_clean_trace__anything_but_an_id_or_web_address__is_left_out() -> None:
    traces = ("4bf9", "a" * 200, "https://traces.example/x", LONG)
    assert tuple(clean_trace(f" {text} ") for text in traces) == traces
    others = (
        "",
        "two words",
        "é",
        "0" * 32,
        "..",
        "a" * 201,
        f"{LONG}x",
        "https://me:pw@x.example/",
        "javascript://x/",
    )
    assert [text for text in others if clean_trace(text) is not None] == []


@pytest.mark.parametrize(
    ("trace", "url"),
    [
        ("4bf9", "https://traces.example/p/4bf9/spans"),
        ("../a?b#c)", "https://traces.example/p/..%2Fa%3Fb%23c%29/spans"),
        ("https://traces.example/x?y=z", "https://traces.example/x?y=z"),
        ("https://TRACES.example:443/x`|<", "https://TRACES.example:443/x%60%7C%3C"),
        ("https://traces.example:8443/x", None),
        ("http://traces.example/x", None),
        ("https://traces.example.evil.example/x", None),
        ("https://traces.example\\.evil.example/x", None),
        ("***", None),
        (None, None),
    ],
)
def test_build_trace_url__goes_only_where_the_template_does(trace, url) -> None:
    assert (build_trace_url(trace, TEMPLATE), build_trace_url(trace, None)) == (url, None)


@given(st.text(st.characters(codec="ascii"), max_size=60), st.sampled_from(["", "https://traces.example", "http://x/"]))
def test_build_trace_url__any_text__is_within_what_a_result_may_hold(text, start) -> None:
    trace = clean_trace(start + text)
    url = build_trace_url(trace, TEMPLATE)
    assert msgspec.convert({"trace": trace, "traceUrl": url}, CaseDetails).trace_url == url
    assert url is None or re.fullmatch(r"https://traces\.example[^\s()<>\[\]'\"`|\\]*", url, re.IGNORECASE)


REFUSED = """
https://traces.example/ https://{{traceId}}.example/ https://traces.example/{{traceId}}/{{traceId}}
https://traces.example/{{runId}}/{{traceId}} https://me@traces.example/{{traceId}} traces.example/{{traceId}}
"""


@pytest.mark.parametrize("text", REFUSED.split())
def test_parse_trace_template__no_address_with_one_id__is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"\{\{traceId\}\}|http"):
        parse_trace_template(text)


def test_parse_trace_template__signs_with_a_meaning_in_markdown__are_encoded() -> None:
    template = parse_trace_template("https://t.example/a b)?id={{traceId}}#(x)")
    assert template == "https://t.example/a%20b%29?id={{traceId}}#%28x%29"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://me@x/", "https://x/a)b", "https://x/ y", "//x/y"])
def test_case_details__forged_link__is_no_result(url) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"trace": "t", "traceUrl": url}, CaseDetails)
