"""Results of a matrix: legs with the same file names stay apart, and keep their names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.program import gate

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflows" / "matrix-results.yml"


def junit(**failed: bool) -> str:
    """A suite `agent` with these tests, of which some failed."""
    tests = (f'<testcase name="{name}" time="1">{"<failure/>" if no else ""}</testcase>' for name, no in failed.items())
    return f'<testsuites><testsuite name="agent">{"".join(tests)}</testsuite></testsuites>'


def write_leg(folder: Path, leg: str, text: str, name: str = "junit.xml") -> None:
    """Write the results of a leg, as an artifact of it is unpacked."""
    (folder / leg).mkdir(parents=True, exist_ok=True)
    (folder / leg / name).write_text(text)


def check(folder: Path, *arguments: str) -> tuple[int, dict[str, list[str]], str]:
    """Check results; the exit code, the failed and passed cases by suite, and what was said."""
    done = gate(folder, "check", *arguments, "--json")
    said = " ".join(done.stderr.split())
    suites = json.loads(done.stdout).get("suites", []) if done.stdout else []
    cases = {suite["toolName"]: [f"{one['id']} {one['status']}" for one in suite["cases"]] for suite in suites}
    return done.returncode, cases, said


@pytest.mark.parametrize("given", ["results", "results/*", "results/*/junit.xml", "results/**/*.xml"])
def test_legs__same_file_and_case_names__are_suites_of_their_own(tmp_path, given) -> None:
    write_leg(tmp_path / "results", "results-ubuntu", junit(refund=False))
    write_leg(tmp_path / "results", "results-windows", junit(refund=True))
    code, cases, said = check(tmp_path, given, "--fail-on", "failures")
    assert code == 1, said
    assert cases == {"results-ubuntu: agent": ["refund passed"], "results-windows: agent": ["refund failed"]}


def test_legs__another_is_added__names_of_the_first_stay(tmp_path) -> None:
    for leg in ("a", "b"):
        write_leg(tmp_path / "r", leg, junit(refund=False))
    before = set(check(tmp_path, "r")[1])
    write_leg(tmp_path / "r", "deeper/c", junit(refund=False))
    assert set(check(tmp_path, "r")[1]) == before | {"deeper/c: agent"}


def test_legs__file_of_one_leg_alone__has_its_prefix_too(tmp_path) -> None:
    for leg in ("a", "b"):
        write_leg(tmp_path / "r", leg, junit(refund=False))
    write_leg(tmp_path / "r", "b", junit(order=False), "more.xml")
    assert sorted(check(tmp_path, "r")[1]) == ["a: agent", "b: agent"]
    write_leg(tmp_path / "r", "c", junit(other=False), "own.xml")
    assert sorted(check(tmp_path, "r")[1]) == ["a: agent", "agent", "b: agent"]


def test_legs__regression_in_one__is_found_against_the_same_leg(tmp_path) -> None:
    for when, windows in (("before", False), ("now", True)):
        write_leg(tmp_path / when, "ubuntu", junit(refund=False, order=True))
        write_leg(tmp_path / when, "windows", junit(refund=windows, order=False))
    code, _, _ = check(tmp_path, "now", "--baseline", "before", "--fail-on", "regressions", "--reruns", "0")
    done = gate(tmp_path, "check", "now", "--baseline", "before", "--fail-on", "regressions", "--reruns", "0")
    assert (code, "1 regression" in done.stdout) == (1, True), done.stdout
    assert "windows: agent" in done.stdout


def test_legs__one_is_missing__pattern_keeps_the_names_of_the_other(tmp_path) -> None:
    for leg in ("a", "b"):
        write_leg(tmp_path / "before", leg, junit(refund=False, order=False))
    write_leg(tmp_path / "now", "a", junit(refund=False, order=True))
    options = ("--fail-on", "regressions", "--reruns", "0")
    by_pattern = gate(tmp_path, "check", "now/*/junit.xml", "--baseline", "before/*/junit.xml", *options)
    assert (by_pattern.returncode, "1 regression" in by_pattern.stdout) == (1, True), by_pattern.stdout
    by_folder = gate(tmp_path, "check", "now", "--baseline", "before", *options)
    assert by_folder.returncode == 3, "nothing tells that the folder is a leg, and no name is in the baseline"


@pytest.mark.parametrize(
    ("legs", "why"),
    [
        (("2026-11-27T10-20-30", "2026-11-27T11-20-30"), "folders of two runs"),
        (("ubuntu", "20261127"), "one of them is of a run"),
        (("4711471147", "4711471148"), "numbers of runs"),
        ((".", "copy"), "one is in the other"),
    ],
)
def test_legs__folders_cannot_tell_them_apart__two_results_of_a_case_are_refused(tmp_path, legs, why) -> None:
    write_leg(tmp_path / "r", legs[0], junit(refund=False))
    write_leg(tmp_path / "r", legs[1], junit(refund=True))
    done = gate(tmp_path, "check", "r")
    assert done.returncode == 2, why
    assert "two results have the same name" in done.stderr or "two runs of the tool" in done.stderr


def test_legs__each_file_has_a_prefix__keeps_its_name_with_and_without_others(tmp_path) -> None:
    write_leg(tmp_path, "x", junit(refund=False))
    write_leg(tmp_path, "y", junit(refund=True))
    assert list(check(tmp_path, "linux=x/junit.xml")[1]) == ["linux: agent"]
    code, cases, _ = check(tmp_path, "linux=x/junit.xml", "windows=y", "--fail-on", "failures")
    assert (code, cases) == (1, {"linux: agent": ["refund passed"], "windows: agent": ["refund failed"]})
    refused = gate(tmp_path, "check", "x/junit.xml", "y/junit.xml")
    assert refused.returncode == 2, "without a prefix nothing tells them apart"


def test_legs__own_results_with_trials__are_not_trials_of_one_case(tmp_path) -> None:
    for leg, trial in (("a", 1), ("b", 2)):
        line = json.dumps({"suite": "s", "id": "refund", "status": ["passed", "failed"][trial - 1], "trial": trial})
        write_leg(tmp_path / "r", leg, f"{line}\n", "out.jsonl")
    code, cases, _ = check(tmp_path, "r", "--fail-on", "failures")
    assert (code, cases) == (1, {"a: s": ["refund passed"], "b: s": ["refund failed"]})


def test_legs__prefix_of_a_file__holds_for_its_reruns(tmp_path) -> None:
    for name, no in (("before", False), ("now", True)):
        (tmp_path / f"{name}.xml").write_text(junit(refund=no))
    again = "cp before.xml {output}"
    options = ("--baseline", "linux=before.xml", "--fail-on", "regressions", "--rerun-command", again)
    done = gate(tmp_path, "check", "linux=now.xml", *options)
    assert done.returncode != 2, done.stderr
    assert "none of the requested cases" not in done.stdout + done.stderr
    (tmp_path / "other.xml").write_text(junit(refund=False))
    other = gate(tmp_path, "check", "linux=now.xml", "x=other.xml", *options)
    said = "none of the requested cases, such as refund of linux: write the results of linux to {output}/linux"
    assert said in " ".join((other.stdout + other.stderr).split()), "nobody knows whose re-run it is"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "baseline", "below"),
    [
        (("r",), "before", ""),
        (("r",), "before", "deeper/"),
        (("r/*/junit.xml",), "before/*/junit.xml", ""),
        (("windows=r/windows/junit.xml", "linux=r/linux/junit.xml"), "before", ""),
    ],
    ids=["folder", "deeper", "glob", "prefixes"],
)
def test_legs__one_of_several_is_run_again__its_folder_in_the_output_says_which(
    tmp_path, given, baseline, below
) -> None:
    for folder, no in (("before", False), ("r", True)):
        write_leg(tmp_path / folder, f"{below}windows", junit(refund=no))
        write_leg(tmp_path / folder, f"{below}linux", junit(refund=False))
    options = ("--baseline", baseline, "--fail-on", "regressions", "--rerun-command")
    leg = f"{below}windows"
    again = f"mkdir -p {{output}}/{leg} && cp before/{leg}/junit.xml {{output}}/{leg}"
    done = gate(tmp_path, "check", *given, *options, again)
    assert "none of the requested cases" not in done.stdout + done.stderr
    assert (done.returncode, "inconclusive" in done.stdout) == (0, True), done.stdout + done.stderr
    plain = gate(tmp_path, "check", *given, *options, f"cp before/{leg}/junit.xml {{output}}")
    said = f"such as refund of {leg}: write the results of {leg} to {{output}}/{leg}"
    assert said in " ".join((plain.stdout + plain.stderr).split())
    assert plain.returncode == 3


LEGS = ("linux", "mac", "windows")


def write_legs(folder: Path, *legs: str, broken: str = "", name: str = "junit.xml") -> None:
    """Write legs with two passing tests each; the tests of the one that is broken fail."""
    for leg in legs:
        write_leg(folder, leg, junit(refund=leg == broken, order=leg == broken), name)


@pytest.mark.parametrize("given", ["{}/*/junit.xml", "{}/**/junit.xml", "{}"])
@pytest.mark.parametrize(("broken", "code"), [("", 3), ("mac", 1)])
def test_legs__one_of_the_baseline_is_missing__is_no_pass(tmp_path, given, broken, code) -> None:
    write_legs(tmp_path / "before", *LEGS)
    write_legs(tmp_path / "now", "linux", "mac", broken=broken)
    options = ("--baseline", given.format("before"), "--fail-on", "regressions", "--report", "md=c.md")
    done = gate(tmp_path, "check", given.format("now"), *options)
    said = " ".join(done.stdout.split())
    assert done.returncode == code, said
    assert "the leg windows has 0 of 2 cases of the baseline, less than 50.0 %" in said
    comment = (tmp_path / "c.md").read_text()
    assert "This says nothing about your change" not in comment, "a change that ends the tool leaves nothing either"
    assert ("why these cases did not run: this change may be the cause" in comment) is (code == 3)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"windows": junit()}, "the leg windows has 0 of 2 cases"),
        (
            {"windows": junit().replace("</testsuite>", '<testcase name="x"><skipped/></testcase></testsuite>')},
            "0 of 2",
        ),
        ({}, "the leg windows has 0 of 2 cases"),
    ],
)
def test_legs__one_has_no_test_that_ran__is_no_pass(tmp_path, files, said) -> None:
    write_legs(tmp_path / "before", *LEGS)
    write_legs(tmp_path / "now", "linux", "mac")
    for leg, text in files.items():
        write_leg(tmp_path / "now", leg, text)
    done = gate(tmp_path, "check", "now/*/junit.xml", "--baseline", "before/*/junit.xml", "--fail-on", "regressions")
    assert (done.returncode, said in " ".join(done.stdout.split())) == (3, True), done.stdout


def test_legs__one_has_another_name__is_found_again(tmp_path) -> None:
    write_legs(tmp_path / "before", *LEGS)
    write_legs(tmp_path / "now", "linux", "mac", "windows-2025")
    done = gate(tmp_path, "check", "now/*/junit.xml", "--baseline", "before/*/junit.xml", "--fail-on", "regressions")
    assert done.returncode == 0, done.stdout + done.stderr


def test_legs__one_is_given_up_on_purpose__min_coverage_allows_it(tmp_path) -> None:
    write_legs(tmp_path / "before", *LEGS)
    write_legs(tmp_path / "now", "linux", "mac")
    options = ("--baseline", "before/*/junit.xml", "--fail-on", "regressions", "--min-coverage", "0")
    assert gate(tmp_path, "check", "now/*/junit.xml", *options).returncode == 0


def test_legs__one_was_missing_in_a_run__the_run_is_no_baseline(tmp_path) -> None:
    write_legs(tmp_path / "r", *LEGS)
    latest = ("check", "r/*/junit.xml", "--baseline", "latest", "--fail-on", "regressions")
    assert gate(tmp_path, *latest).returncode == 0
    for file in (tmp_path / "r" / "windows").iterdir():
        file.unlink()
    assert gate(tmp_path, *latest).returncode == 3
    write_legs(tmp_path / "r", *LEGS, broken="windows")
    done = gate(tmp_path, *latest)
    assert (done.returncode, "REGRESSIONS (2)" in done.stdout) == (1, True), done.stdout


def test_check__half_of_the_cases_are_skipped_by_the_change__is_no_pass(tmp_path) -> None:
    write_leg(tmp_path, "a", junit(a=False, b=False, c=False))
    skipped = '<testcase name="b"><skipped/></testcase><testcase name="c"><skipped/></testcase></testsuite>'
    write_leg(tmp_path, "b", junit(a=False).replace("</testsuite>", skipped, 1))
    done = gate(tmp_path, "check", "b/junit.xml", "--baseline", "a/junit.xml", "--fail-on", "regressions")
    said = " ".join(done.stdout.split())
    assert (done.returncode, "1 of 3 cases of the baseline ran, less than 50.0 %: the others were skipped" in said) == (
        3,
        True,
    ), said


@pytest.mark.parametrize(
    "given",
    [
        ("r/*/junit.xml", "r/*/*.xml"),
        ("r", "r/*/junit.xml"),
        ("r/*/junit.xml", "r/a/junit.xml"),
        ("a=r/a/junit.xml", "r/*/junit.xml"),
    ],
)
def test_check__two_patterns_match_one_file__it_is_read_once(tmp_path, given) -> None:
    write_legs(tmp_path / "r", "a", "b", broken="b")
    done = gate(tmp_path, "check", *given, "--fail-on", "failures", "--verbose")
    assert (done.returncode, "2 of 4 pass 2 do not pass" in " ".join(done.stdout.split())) == (1, True), (
        done.stdout + done.stderr
    )
    assert "a: agent" in done.stdout
    assert "r/a/junit.xml is named twice, and was read once" in " ".join(done.stdout.split())


def link_leg(folder: Path) -> None:
    (folder / "r" / "b").symlink_to("a")


def link_file(folder: Path) -> None:
    (folder / "r" / "b").mkdir()
    (folder / "r" / "b" / "junit.xml").symlink_to("../a/junit.xml")


@pytest.mark.parametrize("make", [link_leg, link_file])
def test_legs__one_is_a_link_to_another__is_an_error(tmp_path, make) -> None:
    write_legs(tmp_path / "r", "a")
    make(tmp_path)
    done = gate(tmp_path, "check", "r/*/junit.xml")
    assert (done.returncode, "r/b/junit.xml: is the same file as r/a/junit.xml" in done.stderr) == (2, True)


def test_legs__one_file_has_two_prefixes__is_an_error(tmp_path) -> None:
    write_legs(tmp_path, "x")
    done = gate(tmp_path, "check", "linux=x/junit.xml", "windows=x/junit.xml")
    assert (done.returncode, "error[duplicate-results]" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "said"), [(False, "REGRESSIONS (1): refund"), (True, "REMOVED (2): ")])
def test_example_of_a_matrix__a_leg_that_is_worse_or_missing__fails_the_gate(tmp_path, missing, said) -> None:
    """The legs, the pattern and the rules are those of the workflow."""
    jobs = yaml.safe_load(EXAMPLE.read_text())["jobs"]
    legs = [f"results-{python}" for python in jobs["legs"]["strategy"]["matrix"]["python"]]
    inputs = jobs["evals"]["steps"][-1]["with"]
    rules = [word for one in inputs["fail-on"].split(", ") for word in ("--fail-on", one)]
    options = (inputs["results"], *rules, "--baseline", "latest", "--reruns", "0")
    for leg in legs:
        write_leg(tmp_path / "results", leg, junit(refund=False, hours=False))
    assert check(tmp_path, *options)[0] == 0
    if missing:
        shutil.rmtree(tmp_path / "results" / legs[0])
    else:
        write_leg(tmp_path / "results", legs[0], junit(refund=True, hours=False))
    done = gate(tmp_path, "check", *options)
    assert (done.returncode, said in done.stdout) == (1, True), done.stdout + done.stderr
