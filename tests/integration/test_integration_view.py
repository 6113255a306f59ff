"""`eval-gate view`: the page of a stored run, wherever the run lies, and whoever sits in front of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ENVIRONMENT, PROGRAM, fails_on, gate, record, write_suite
from tests.support.agents import agent


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """Three runs: a green one, one with a regression against it, and one that is as the first."""
    folder = tmp_path_factory.mktemp("kept")
    write_suite(folder, 3)
    ids = []
    for broken, arguments in (((), []), ((1,), ["--baseline", "latest"]), ((), [])):
        with agent(fails_on(*broken)) as running:
            gate(folder, "run", "--agent-endpoint", running.url, "--fail-on", "regressions", *arguments)
        ids.append(record(folder)["runId"])
    (folder / "ids").write_text("\n".join(ids))
    return folder


@pytest.fixture
def runs(kept, tmp_path) -> list[str]:
    """The ids of the three, in a folder of one's own."""
    shutil.copytree(kept / "evals", tmp_path / "evals")
    return (kept / "ids").read_text().split()


def shown(done: subprocess.CompletedProcess[str]) -> str:
    """The page that was made: its path is all of standard output."""
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.removesuffix("\n")).read_text()


def test_view__nothing_named__is_the_newest_run_in_its_own_folder(tmp_path, runs) -> None:
    done = gate(tmp_path, "view")
    assert done.stdout == f"evals/results/{runs[2]}/report.html\n"
    page = (tmp_path / done.stdout.strip()).read_text()
    assert "<html" in page
    assert "1 regression" not in page


def test_view__run_id__shows_it_as_it_was_judged(tmp_path, runs) -> None:
    done = gate(tmp_path, "view", runs[1], "--no-open")
    assert done.stdout == f"evals/results/{runs[1]}/report.html\n"
    assert "1 regression" in (tmp_path / done.stdout.strip()).read_text()


def test_view__baseline__judges_once_more_and_leaves_record_and_own_page_as_they_are(tmp_path, runs) -> None:
    own = tmp_path / "evals/results" / runs[2]
    gate(tmp_path, "view")
    before = {file.name: file.read_bytes() for file in own.iterdir()}
    done = gate(tmp_path, "view", "--baseline", runs[1])
    assert done.stdout == f"evals/results/{runs[2]}/report-against-{runs[1]}.html\n"
    assert runs[1] in (tmp_path / done.stdout.strip()).read_text()
    assert {file.name: file.read_bytes() for file in own.iterdir() if file.name in before} == before


def test_view__judged_once_more__says_what_compare_says(tmp_path, runs) -> None:
    compared = gate(tmp_path, "compare", runs[0], runs[1], "--report", "html")
    assert (compared.returncode, compared.stderr) == (1, "wrote report.html\n")
    done = gate(tmp_path, "view", runs[1], "--baseline", runs[0], "-o", "other.html")
    assert (done.stdout, done.returncode) == ("other.html\n", 0)
    titles = [re.findall("<title>.*</title>", (tmp_path / name).read_text()) for name in ("report.html", "other.html")]
    assert titles[0] == titles[1]
    assert "1 regression" in titles[0][0]


def test_view__configuration_says_whom_to_ask__the_page_says_how_to_run_and_accept_a_case(tmp_path, runs) -> None:
    assert "eval-gate run" not in shown(gate(tmp_path, "view", runs[1], "-o", str(tmp_path / "one.html")))
    (tmp_path / "eval-gate.yaml").write_text("agentEndpoint: http://localhost:9/chat\n")
    page = shown(gate(tmp_path, "view", runs[1], "-o", str(tmp_path / "two.html")))
    assert "eval-gate run --case gs-001" in page
    assert "eval-gate waive gs-001" in page


def test_view__archive_as_github_gives_it__is_written_to_a_folder_of_its_own(tmp_path, runs) -> None:
    stored = tmp_path / "evals/results" / runs[1]
    with zipfile.ZipFile(tmp_path / "eval-gate-results.zip", "w") as packed:
        for file in stored.iterdir():
            packed.write(file, file.name)
    shutil.rmtree(tmp_path / "evals")
    done = gate(tmp_path, "view", "eval-gate-results.zip")
    page = Path(done.stdout.strip())
    assert page.is_absolute()  # what is removed below is never the current folder
    try:
        assert "1 regression" in shown(done)
        assert page.parent.parent == Path(tempfile.gettempdir())
    finally:
        shutil.rmtree(page.parent)


def test_view__folder_run_file_and_folder_of_runs__lead_to_the_run(tmp_path, runs) -> None:
    for reference in (f"evals/results/{runs[1]}", f"evals/results/{runs[1]}/run.json"):
        assert gate(tmp_path, "view", reference).stdout == f"evals/results/{runs[1]}/report.html\n"
    assert gate(tmp_path, "view", "evals/results").stdout == f"evals/results/{runs[2]}/report.html\n"


def test_view__results_folder_of_the_configuration__is_where_it_looks(tmp_path, runs) -> None:
    (tmp_path / "evals/results").rename(tmp_path / "kept")
    (tmp_path / "eval-gate.yaml").write_text("outputDir: kept\n")
    assert gate(tmp_path, "view").stdout == f"kept/{runs[2]}/report.html\n"
    done = gate(tmp_path, "view", "--baseline", runs[1], "-o", "page.html")
    assert runs[1] in (tmp_path / done.stdout.strip()).read_text()


def test_view__folder_that_cannot_be_written__is_said_and_the_page_is_elsewhere(tmp_path, runs) -> None:
    (tmp_path / "evals/results" / runs[2] / "report.html").mkdir()
    done = gate(tmp_path, "view")
    page = Path(done.stdout.strip())
    assert "<html" in shown(done)
    assert page.is_absolute()
    assert "writing the report to another folder" in done.stderr
    shutil.rmtree(page.parent)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["view"],
            2,
            ["error[run-not-found]: evals/results contains no run yet", "hint: make one with `eval-gate run`"],
        ),
        (["view", "0b9e"], 2, ['stored result "0b9e" not found', "give a run id of evals/results"]),
        (["view", "--output", "/dev/null"], 2, ["error[output-outside-working-directory]"]),
    ],
)
def test_view__what_is_not_there__is_an_error_with_a_hint(tmp_path, arguments, code, said) -> None:
    done = gate(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    for words in said:
        assert words in done.stderr


def test_view__baseline_that_is_not_there__writes_nothing(tmp_path, runs) -> None:
    done = gate(tmp_path, "view", "--baseline", "nowhere")
    assert (done.returncode, "error[baseline-not-found]" in done.stderr) == (2, True)
    assert not list(tmp_path.glob("**/*.html"))


@pytest.mark.parametrize(
    ("arguments", "variables", "opened"),
    [
        ([], {"DISPLAY": ":0"}, True),
        (["--no-open"], {"DISPLAY": ":0"}, False),
        ([], {}, False),
        ([], {"DISPLAY": ":0", "CI": "true"}, False),
    ],
)
def test_view__on_a_terminal__opens_the_browser_where_there_is_a_screen(
    tmp_path, runs, arguments, variables, opened
) -> None:
    import pty

    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
    terminal, theirs = pty.openpty()
    done = subprocess.run(
        [*PROGRAM, "view", *arguments],
        cwd=tmp_path,
        env=environment | {"BROWSER": f"{browser} %s"} | variables,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    page = f"evals/results/{runs[2]}/report.html"
    assert os.read(terminal, 65_536).decode().strip() == page
    os.close(terminal)
    assert (done.returncode, (tmp_path / "opened").exists()) == (0, opened)
    if opened:
        assert (tmp_path / "opened").read_text().strip() == (tmp_path / page).resolve().as_uri()


def test_view__in_a_pipe__opens_nothing(tmp_path, runs) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {tmp_path}/opened\n")
    browser.chmod(0o755)
    assert gate(tmp_path, "view", DISPLAY=":0", BROWSER=f"{browser} %s").returncode == 0
    assert not (tmp_path / "opened").exists()


def test_view__record_of_somebody_else__its_ids_are_no_paths(tmp_path, runs) -> None:
    stored = tmp_path / "evals/results" / runs[0] / "run.json"
    found = json.loads(stored.read_text())
    found["runId"] = "../../../evil"
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    done = gate(tmp_path, "view", "--baseline", "theirs.json")
    assert done.stdout == f"evals/results/{runs[2]}/report-against-another.html\n"
