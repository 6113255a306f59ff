"""`reportOnly`: in the first weeks a regression is shown and stops nothing, and this ends by itself."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.support.world import plain

STEADY = "P" * 8
BROKEN = "F" + STEADY[1:]
TEN = "until 10 runs"
SENTENCE = "This gate exits with 0 until the history has 8 more runs of the default branch (reportOnly: until 10 runs)."


def test_report_only__regression_with_two_of_ten_runs__is_a_neutral_check_and_says_what_is_left(action) -> None:
    action.main(f"{STEADY}*2")
    seen = action.here(BROKEN, report_only=TEN)
    assert seen.code == 0, seen.ended.log
    outputs = [seen.ended.outputs[name] for name in ("verdict", "exit-code", "regressions")]
    assert outputs == ["failed", "0", "1"]
    assert seen.check["conclusion"] == "neutral"
    assert seen.check["output"]["title"].startswith("Would have failed: 1 regression (reported only for 8 more runs)")
    assert seen.title.endswith("⚠️ Agent eval gate — would have failed: 1 regression (reported only for 8 more runs)")
    assert SENTENCE in plain(seen.report)
    assert "GATE WOULD HAVE FAILED" in seen.text
    verdict = seen.json["verdict"]
    assert (verdict["outcome"], verdict["exitCode"], verdict["runsUntilFailing"]) == ("failed", 0, 8)


def test_report_only__enough_runs__fails_as_without_it(action) -> None:
    action.main(f"{STEADY}*2")
    seen = action.here(BROKEN, report_only="until 2 runs")
    assert (seen.code, seen.check["conclusion"]) == (1, "failure"), seen.ended.log
    assert "would have" not in plain(seen.report).lower()


def test_report_only__command_line__exits_with_0_and_its_junit_report_does_not_block(world) -> None:
    branch = world(f"{STEADY}*2")
    seen = branch.here(BROKEN, "--report-only", TEN, "--report", "junit=gate.xml")
    assert (seen.code, seen.json["verdict"]["outcome"]) == (0, "failed"), seen.text
    assert "GATE WOULD HAVE FAILED" in seen.text
    report = ET.parse(branch.folder / "gate.xml").getroot()
    assert not [*report.iter("failure"), *report.iter("error")]
    assert [one.text for one in report.iter("skipped") if "does not block" in (one.text or "")]


def test_report_only__case_that_never_responds_any_more__fails_as_without_it(world) -> None:
    branch = world(f"{STEADY * 4}*2")
    seen = branch.here(f"C{(STEADY * 4)[1:]}", "--report-only", TEN)
    assert (seen.code, "would have" in seen.text.lower()) == (1, False), seen.text
