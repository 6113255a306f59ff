"""`eval-gate trend` on a machine: from runs to the page, the badge and its data."""

import json
import re

from tests.integration.test_integration_drift import check_results
from tests.support.program import gate

NAMES = ("trend.html", "badge.svg", "badge.json")


def test_trend__runs_of_a_folder__are_all_on_the_page_and_the_newest_is_the_badge(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("outputDir: out/runs\n")
    assert [check_results(tmp_path), check_results(tmp_path, "a"), check_results(tmp_path, "a")] == [0, 1, 1]
    done = gate(tmp_path, "trend")
    assert (done.returncode, done.stdout.split()) == (0, [f"out/runs/trend/{name}" for name in NAMES]), done.stderr
    page = (tmp_path / "out/runs/trend/trend.html").read_text()
    rows = page.partition("All runs</h2>")[2]
    assert re.findall(r"<td class=\"n\">(\d of \d)</td>", rows) == ["3 of 4", "3 of 4", "4 of 4"]
    assert re.findall(r"<td class=\"(?:passed|failed|warning)\">(\w+)</td>", rows) == ["failed", "failed", "passed"]
    assert re.search(r'<td class="w"><code>[\d: -]{16}</code></td><td class="w"><span[^>]*>fails now', page)
    badge = json.loads((tmp_path / "out/runs/trend/badge.json").read_text())
    assert (badge["message"], badge["color"]) == ("75 % passing, gate failed", "#cf222e")
    newest = json.loads((tmp_path / "out/runs/latest.json").read_text())["runId"]
    for reference in (newest, f"out/runs/{newest}/history.json", f"out/runs/{newest}"):
        other = gate(tmp_path, "trend", reference, "-o", "public")
        assert (other.returncode, other.stdout.split()[0]) == (0, "public/trend.html"), other.stderr
        assert "3 of 4 pass" in (tmp_path / "public/trend.html").read_text()


def test_trend__newest_run_is_incomplete__has_its_runs_and_a_badge_that_is_not_green(tmp_path) -> None:
    assert check_results(tmp_path) == 0
    (tmp_path / "eval-gate.yaml").write_text("trials: 2\npasses: 2\n")
    assert check_results(tmp_path) == 3
    assert gate(tmp_path, "trend").returncode == 0
    badge = json.loads((tmp_path / "evals/results/trend/badge.json").read_text())
    assert (badge["message"], badge["color"]) == ("100 % passing, gate inconclusive", "#59636e")


def test_trend__before_the_first_run__says_what_makes_one(tmp_path) -> None:
    done = gate(tmp_path, "trend")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error[run-not-found]: evals/results contains no complete run of all cases",
        "  hint: make one with `eval-gate run`, or name a history file or a folder of runs",
    ]
