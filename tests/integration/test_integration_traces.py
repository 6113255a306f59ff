"""Traces of whole runs: from the setting and the response to comment, console, page and JUnit."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from urllib.parse import unquote

from tests.integration.test_integration_run import record, write_suite
from tests.support.agents import Exchange, agent, vanishing_agent
from tests.support.program import gate

TEMPLATE = "https://traces.example/p/1/{{traceId}}?tab=spans"
REPORTS = {"md": "report.md", "junit": "junit.xml", "html": "report.html"}


class Desk:
    """An agent that reports what `traces` says, in its body or as headers, and fails `ask 1` if `is_dead`."""

    def __init__(self, **headers: str) -> None:
        self.headers, self.body, self.is_dead, self.status = headers, {}, False, "200 OK"

    async def __call__(self, exchange: Exchange) -> None:
        fails = self.is_dead and exchange.json["message"] == "ask 1"
        status = self.status if fails else "200 OK"
        answer = {"response": "no" if fails else "ok", "toolCalls": [], **self.body}
        exchange.answer(answer, status, **self.headers)


def evaluate(folder: Path, url: str, *options: str, settings: dict | None = None, **target: object):
    targets = [{"name": "desk", "url": url, "maxRetries": 0, **target}]
    reports = [f"{name}={file}" for name, file in REPORTS.items()]
    configuration = {"targets": targets, "reports": reports, "reruns": 0, **(settings or {})}
    (folder / "eval-gate.json").write_text(json.dumps(configuration))
    return gate(folder, "run", *options)


def read_reports(folder: Path) -> dict[str, str]:
    return {name: (folder / file).read_text() for name, file in REPORTS.items()}


def find_case(folder: Path, number: int = 1) -> dict:
    return record(folder)["suites"][0]["cases"][number]


def test_run__agent_names_its_traces__failing_case_links_to_its_own_and_to_that_of_the_baseline(tmp_path) -> None:
    write_suite(tmp_path, 3)
    desk = Desk(x_trace_id="a/1")
    with agent(desk) as running:
        settings = {"traceUrl": TEMPLATE}
        assert evaluate(tmp_path, running.url, settings=settings).returncode == 0
        desk.is_dead, desk.headers = True, {"traceparent": f"00-{'4b' * 16}-00f067aa0ba902b7-01"}
        done = evaluate(tmp_path, running.url, "--baseline", "latest", settings=settings)
    now, before = (f"https://traces.example/p/1/{part}?tab=spans" for part in ("4b" * 16, "a%2F1"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"    trace     {now}" in done.stdout
    reports = read_reports(tmp_path)
    assert f"[trace]({now}) · [trace of the baseline]({before})" in reports["md"]
    assert f"<sub>[trace]({now})</sub>" in reports["md"]
    assert f'<property name="trace" value="{now}" />' in reports["junit"]
    assert f'<p>Trace: <a href="{now}">' in reports["html"]
    assert f'<p>Trace of the baseline: <a href="{before}">a/1</a>' in reports["html"]
    assert reports["html"].count(f'"traceUrl":"{now}"') == 3


def test_run__address_elsewhere_or_no_template__is_shown_and_no_link(tmp_path) -> None:
    write_suite(tmp_path, 2)
    desk = Desk()
    with agent(desk) as running:
        assert evaluate(tmp_path, running.url).returncode == 0
        desk.is_dead, base = True, ("--baseline", record(tmp_path)["runId"])
        for address, link in (
            ("https://traces.example:443/x?a=b)#c", "https://traces.example:443/x?a=b%29#c"),
            ("https://evil.example/x", None),
            ("http://traces.example/x", None),
        ):
            desk.body = {"trace": {"at": address}}
            done = evaluate(tmp_path, running.url, *base, settings={"traceUrl": TEMPLATE}, tracePath="trace.at")
            reports, details = read_reports(tmp_path), find_case(tmp_path)["details"]
            assert (details["trace"], details["traceUrl"]) == (address, link)
            assert f"[trace]({link})" in reports["md"] if link else f"trace `{address}`" in reports["md"]
            assert f"<p>Trace: <{'a href' if link else 'code'}" in reports["html"]
            assert f"    trace     {link or address}" in done.stdout
        desk.body = {"trace": {"at": "4bf9"}}
        evaluate(tmp_path, running.url, *base, tracePath="trace.at")
    assert "trace `4bf9`" in read_reports(tmp_path)["md"]


def test_run__traceparent_is_sent__is_the_trace_of_the_execution_and_names_case_and_run(tmp_path) -> None:
    one = {"id": "näh, 1", "input": {"message": "ask 0"}, "expect": {"responseContains": ["ok"]}}
    two = {"id": "two", "turns": [{"message": "ask 1"}, {"message": "ask 2"}], "expect": {"toolsCalled": []}}
    write_suite(tmp_path, 2).write_text(json.dumps([one, two]))
    desk = Desk()
    with agent(desk) as running:
        settings = {"traceUrl": TEMPLATE, "trials": 2}
        target = {"traceparent": True, "headers": {"Baggage": "team=desk"}}
        assert evaluate(tmp_path, running.url, settings=settings, **target).returncode == 0
        contexts = [
            (one.header("traceparent").split("-"), one.header("baggage").split(",")) for one in running.requests
        ]
        desk.is_dead, desk.status = True, "500 Oh"
        evaluate(tmp_path, running.url, settings=settings, **target)
    run_id = record(tmp_path)["runId"]
    traces = [(trace, [unquote(member) for member in members]) for (_, trace, _, _), members in contexts]
    assert {len({span for (_, _, span, _), _ in contexts}), len(contexts)} == {6}
    assert len({trace for trace, _ in traces}) == 4, "one for each execution, with all of its turns"
    assert {members[0] for _, members in traces} == {"team=desk"}
    assert {members[1] for _, members in traces} == {"eval-gate.case=näh, 1", "eval-gate.case=two"}
    assert all(re.fullmatch(r"eval-gate\.run=[0-9a-f-]{36}", members[2]) for _, members in traces)
    broken = find_case(tmp_path)
    assert broken["status"] == "error"
    assert f"eval-gate.run={run_id}" in running.requests[-1].header("baggage")
    sent = {one.header("traceparent").split("-")[1] for one in running.requests[6:]}
    assert broken["details"]["trace"] in sent
    assert f"[trace](https://traces.example/p/1/{broken['details']['trace']}" in read_reports(tmp_path)["md"]


def test_run__agent_that_hangs_or_is_away__has_a_trace_only_where_it_got_the_request(tmp_path) -> None:
    write_suite(tmp_path, 1)

    async def hang(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    settings = {"traceUrl": TEMPLATE, "timeoutMs": 100}
    with agent(hang) as running:
        evaluate(tmp_path, running.url, settings=settings, traceparent=True)
        trace = running.requests[-1].header("traceparent").split("-")[1]
    case = find_case(tmp_path, 0)
    assert (case["errorKind"], case["details"]["trace"]) == ("agent_error", trace)
    with vanishing_agent() as url:  # it is up when the run begins
        evaluate(tmp_path, url, settings={"traceUrl": TEMPLATE}, traceparent=True)
    case = find_case(tmp_path, 0)
    assert (case["errorKind"], case["details"]["trace"]) == ("agent_unreachable", None)


def test_run__settings_that_make_no_link__are_refused_by_name(tmp_path) -> None:
    write_suite(tmp_path, 1)
    done = evaluate(tmp_path, "http://127.0.0.1:1/", settings={"traceUrl": "https://me@traces.example/{{traceId}}"})
    assert (done.returncode, "traceUrl: " in done.stderr, "no user" in done.stderr) == (2, True, True), done.stderr
    done = evaluate(tmp_path, "http://127.0.0.1:1/", traceHeader="not a name")
    assert (done.returncode, "traceHeader" in done.stderr) == (2, True), done.stderr


def test_check__results_of_another_tool__link_by_the_option_and_masked_ids_do_not(tmp_path) -> None:
    lines = [{"id": name, "status": "failed", "trace_id": f"run-{name}"} for name in ("a", "secret")]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    settings = {"redact": ["secret"], "reports": ["junit=junit.xml"]}
    (tmp_path / "eval-gate.json").write_text(json.dumps(settings))
    done = gate(tmp_path, "check", "r.jsonl", "--trace-url", TEMPLATE)
    assert done.returncode == 1
    junit = (tmp_path / "junit.xml").read_text()
    assert '<property name="trace" value="https://traces.example/p/1/run-a?tab=spans" />' in junit
    assert '<property name="trace" value="run-***" />' in junit
    assert "trace     https://traces.example/p/1/run-a?tab=spans" in done.stdout
