"""Where a run writes: below the working directory, unless a person at the command line says otherwise."""

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.files.writing import write_atomically
from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import agent
from tests.support.model_server import model_server, openai_answer

OLD = "not ours\n"


@pytest.fixture
def project(tmp_path) -> Path:
    """A checkout, with a file beside it that nobody may touch."""
    (tmp_path / "beside").write_text(OLD)
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "checkout"
    folder.mkdir()
    write_suite(folder, 1)
    return folder


def configure(project: Path, **settings) -> None:
    (project / "eval-gate.json").write_text(json.dumps(settings, indent=1))


def untouched(project: Path) -> bool:
    beside = project.parent
    return (beside / "beside").read_text() == OLD and not [*(beside / "elsewhere").iterdir()]


FROM_A_FILE = {
    "absolute": ({"reports": ["html", "md={beside}"]}, 'reports[1]: "{beside}" is outside of the working directory'),
    "dots": ({"reports": ["md=../beside"]}, 'reports[0]: "../beside" is outside of'),
    "export": ({"exports": ["agentv={beside}"]}, 'exports[0]: "{beside}" is outside of'),
    "link to a file": ({"reports": ["md=link.md"]}, 'reports[0]: "link.md" is outside of'),
    "link to a folder": ({"reports": ["md=links/new.md"]}, 'reports[0]: "links/new.md" is outside of'),
    "output folder": ({"outputDir": "{elsewhere}"}, 'outputDir: "{elsewhere}" is outside of'),
    "output folder with dots": ({"outputDir": "x/../../elsewhere"}, 'outputDir: "x/../../elsewhere" is outside of'),
    "output folder by a link": ({"outputDir": "links/deeper"}, 'outputDir: "links/deeper" is outside of'),
    "link and back": ({"outputDir": "links/../../elsewhere"}, 'outputDir: "links/../../elsewhere" is outside of'),
    "device": ({"reports": ["md=/dev/full"]}, 'reports[0]: "/dev/full" is outside of'),
    "pipe": ({"reports": ["md=pipe"]}, 'reports[0]: "pipe" is not a regular file'),
}


@pytest.mark.parametrize("name", FROM_A_FILE)
def test_finding_1__place_in_the_configuration__is_refused_before_anything_is_run(project, name) -> None:
    words = {"beside": str(project.parent / "beside"), "elsewhere": str(project.parent / "elsewhere")}
    settings, expected = FROM_A_FILE[name]
    configure(
        project,
        **json.loads(
            json.dumps(settings).replace("{beside}", words["beside"]).replace("{elsewhere}", words["elsewhere"])
        ),
    )
    (project / "link.md").symlink_to("../beside")
    (project / "links").symlink_to("../elsewhere")
    os.mkfifo(project / "pipe")
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url)
    assert (done.returncode, running.requests) == (2, [])
    # each member of a list is on a line of its own
    line = 3 + int(found[1]) if (found := re.match(r"\w+\[(\d)\]", expected)) else 2
    assert f"eval-gate.json:{line}: " + expected.format(**words) in done.stderr
    assert untouched(project)


def test_finding_1__usual_output_folder_is_a_committed_link__is_refused(project) -> None:
    (project / "evals" / "results").symlink_to(project.parent / "elsewhere")
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url)
    assert (done.returncode, running.requests) == (2, [])
    assert 'outputDir: "evals/results" is outside of the working directory' in done.stderr
    assert untouched(project)


@pytest.mark.parametrize("there", ["/dev/full", "pipe", "/dev/stdout"])
def test_finding_1__no_ordinary_file_on_the_command_line__is_left_as_it_is(project, there) -> None:
    os.mkfifo(project / "pipe")
    before = os.lstat(project / there).st_mode
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url, "--report", f"md={there}")
    assert (done.returncode, running.requests) == (2, [])
    assert f'--report[0]: "{there}" is not a regular file' in done.stderr
    assert os.lstat(project / there).st_mode == before


def test_finding_1__place_on_the_command_line__is_the_persons_own_will(project) -> None:
    reports = [f"--report=md={project.parent / 'beside'}", "--report=html=../elsewhere/new/page.html"]
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url, *reports, "--output-dir", "../elsewhere/results")
    assert done.returncode == 0, done.stderr
    assert (project.parent / "beside").read_text().startswith("<!--")
    assert (project.parent / "elsewhere/new/page.html").is_file()
    assert (project.parent / "elsewhere/results/latest.json").is_file()


@pytest.mark.parametrize("option", ["--report=md=link.md", "--report=md=links/new.md", "--output-dir=links"])
def test_finding_1__committed_link_named_on_the_command_line__is_refused(project, option) -> None:
    (project / "link.md").symlink_to("../beside")
    (project / "links").symlink_to("../elsewhere")
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url, option)
    assert (done.returncode, running.requests) == (2, [])
    assert "is outside of the working directory" in done.stderr
    assert untouched(project)


def test_writing__link_that_stays_below__is_followed(project) -> None:
    configure(project, reports=["md=now.md"], outputDir="results")
    (project / "real").mkdir()
    (project / "results").symlink_to("real")
    (project / "now.md").symlink_to("real/then.md")
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url)
    assert done.returncode == 0, done.stderr
    assert (project / "now.md").is_symlink()
    assert (project / "real/then.md").read_text().startswith("<!--")
    assert (project / "real/latest.json").is_file()


@pytest.mark.parametrize("to", ["../beside", "../elsewhere/new.jsonl", "evals/results/nowhere/../../../../beside"])
@pytest.mark.slow
def test_finding_1__committed_link_in_the_place_of_recorded_answers__is_not_followed(project, to) -> None:
    (project / "evals/results").mkdir()
    (project / "evals/results/recording.jsonl").symlink_to(project / to)
    with model_server(openai_answer("ok")) as server:
        model = ("--provider", "openai-compatible", "--model", "m", "--base-url", server.url, "--recording", "record")
        done = gate(project, "run", *model, OPENAI_API_KEY="key")
    assert done.returncode == 3
    assert "is outside of the working directory: a part of the path is a link" in done.stderr
    assert untouched(project)


def test_finding_1__report_of_a_stored_result__onto_a_device_or_by_a_link_is_refused(project) -> None:
    with agent() as running:
        assert gate(project, "run", "--agent-endpoint", running.url).returncode == 0
    (project / "link.md").symlink_to("../beside")
    for place, why in (("/dev/full", "is not a regular file"), ("link.md", "is outside of the working directory")):
        done = gate(project, "report", "latest", "-o", place)
        assert (done.returncode, f'--output: "{place}" {why}' in done.stderr) == (2, True)
    assert untouched(project)
    assert gate(project, "report", "latest", "-o", "../elsewhere/x.md").returncode == 0


def test_finding_1__file_of_accepted_failures__is_written_below_the_working_directory_only(project) -> None:
    asked = ("waive", "gs-000", "--reason", "known", "--until", "7d")
    (project / "link.yaml").symlink_to("../beside")
    configure(project, waiversPath="../elsewhere/waivers.yaml")
    refused = gate(project, *asked)
    assert (refused.returncode, "waiversPath: " in refused.stderr) == (2, True)
    by_link = gate(project, *asked, "--file", "link.yaml")
    assert (by_link.returncode, "is outside of the working directory" in by_link.stderr) == (2, True)
    assert untouched(project)
    assert gate(project, *asked, "--file", "../elsewhere/waivers.yaml").returncode == 0


def test_finding_1__agent_evals__reports_by_a_link_are_refused(project) -> None:
    (project / "suites").mkdir()
    suite = {
        "version": "1.0.0", "name": "s", "agent": {"instructions": "Answer."},
        "cases": [{"id": "a", "prompt": "hi", "assertions": [{"type": "contains", "value": "x"}]}],
    }  # fmt: skip
    (project / "suites/s.json").write_text(json.dumps(suite))
    (project / "tmp").symlink_to("../elsewhere")
    for folder in ("tmp", "tmp/deeper"):
        done = gate(
            project,
            "agent-evals",
            "--all",
            "--tmp-dir",
            folder,
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL="http://127.0.0.1:9",
        )
        assert done.returncode == 2, done.stderr
    assert untouched(project)


def test_finding_1__folder_for_logs_of_codex__is_below_the_working_directory(project) -> None:
    target = {"name": "c", "provider": "codex", "executable": "true", "log_dir": str(project.parent / "elsewhere")}
    configure(project, targets=[target], target="c")
    done = gate(project, "run")
    assert (done.returncode, "log_dir" in done.stderr) == (2, True), done.stderr
    assert untouched(project)


def test_record__paths__are_as_they_were_given(project) -> None:
    with agent() as running:
        gate(project, "run", "--agent-endpoint", running.url, "--report", "md=out/report.md")
    assert record(project)["complete"]
    assert (project / "out/report.md").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave files of root and become somebody else")
@pytest.mark.parametrize(
    ("folder", "quoted"),
    [("evals/results", "evals/results"), ("-R $(id) it's", """'-R $(id) it'"'"'s'""")],
)
def test_results__left_by_a_container__are_said_to_be_of_root_and_how_to_have_them(monkeypatch, folder, quoted) -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to others
        monkeypatch.chdir(made)
        Path(made).chmod(0o755)
        write_atomically(Path(folder, "one/run.json"), "{}")
        os.seteuid(65534)  # the program as a whole would be another user's who may not read this Python
        try:
            with pytest.raises(GateError) as caught:
                write_atomically(Path(folder, "two/run.json"), "{}")
            with pytest.raises(GateError) as elsewhere:
                write_atomically(Path("/no-folder-of-anybody/run.json"), "{}")
        finally:
            os.seteuid(0)
    assert caught.value.message == f"{folder}/two/run.json cannot be written: Permission denied"
    assert caught.value.hint == (
        f"{folder} belongs to root, probably because a container wrote it:"
        f' run `sudo chown -R "$(id -u)" -- {quoted}`'
        ", or choose another folder with --output-dir"
    )
    assert elsewhere.value.hint == "choose another folder with --output-dir", "nobody is told to make `/` theirs"
