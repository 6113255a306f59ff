"""Where the action writes: into the workspace, whatever a pull request's configuration says."""

import json
import os

import pytest

from tests.support.agents import agent
from tests.support.jobs import RUNNER_ID

OLD = "not ours\n"
PLACES = {
    "report": ({"reports": ["md={beside}"]}, "reports[0]"),
    "export": ({"exports": ["agentv=../beside"]}, "exports[0]"),
    "link": ({"reports": ["md=link.md"]}, "reports[0]"),
    "results": ({"outputDir": "links"}, "outputDir"),
    "device": ({"reports": ["md=/dev/full"]}, "reports[0]"),
}


@pytest.mark.parametrize("name", PLACES)
def test_finding_1__pull_request_names_a_place_outside__nothing_is_asked_and_nothing_written(job, github, name) -> None:
    settings, setting = PLACES[name]
    beside = job.folder / "beside"
    beside.write_text(OLD)
    (job.folder / "elsewhere").mkdir()
    (job.workspace / "link.md").symlink_to("../beside")
    (job.workspace / "links").symlink_to("../elsewhere")
    text = json.dumps(settings, indent=1).replace("{beside}", str(beside))
    (job.workspace / "eval-gate.json").write_text(text)
    with agent() as running:
        ended = job.pull_request(github.state.add_pull(7), running.url)
    assert (ended.code, running.requests) == (2, [])
    line = 3 if "[0]" in setting else 2  # the member of a list is on a line of its own
    assert f"eval-gate.json:{line}: {setting}: " in ended.log
    assert beside.read_text() == OLD
    assert not [*(job.folder / "elsewhere").iterdir()]


@pytest.mark.parametrize(
    ("variable", "place"), [("INPUT_SET", "outputDir: ../beside"), ("EVAL_GATE_OUTPUT_DIR", "/tmp/x")]
)
def test_finding_1__the_workflow_names_a_place_outside__is_an_error_and_not_lost(job, github, variable, place) -> None:
    with agent() as running:
        ended = job.pull_request(github.state.add_pull(7), running.url, **{variable: place})
    assert (ended.code, running.requests) == (2, [])
    assert "is outside of the working directory" in ended.log


def test_finding_1__results_folder_swapped_for_a_link_while_the_evals_run__is_not_followed(job, github) -> None:
    elsewhere = job.folder / "elsewhere"
    elsewhere.mkdir()

    async def swap(exchange) -> None:
        results = job.workspace / "evals" / "results"
        if not results.is_symlink():
            results.rename(job.folder / "moved")
            results.symlink_to(elsewhere)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(swap) as running:
        ended = job.pull_request(github.state.add_pull(7), running.url)
    assert ended.code == 3
    assert "is outside of the working directory: a part of the path is a link" in ended.log
    assert not [*elsewhere.iterdir()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than others")
@pytest.mark.parametrize(("owner", "mode"), [(RUNNER_ID, 0o755), (0, 0o777), (0, 0o1777), (0, 0o775)])
def test_pull_request__command_in_the_container__cannot_put_a_folder_in_place_of_ours(job, github, owner, mode) -> None:
    """The runner's temporary folder is its user's, as the command is, or everybody's. Ours has rules and baseline."""
    temporary = job.folder / "temp"
    temporary.mkdir(exist_ok=True)
    swap = "for one in eval-gate-*; do mv $one taken && mkdir $one; done"
    command = f"cd {temporary} && touch ran; {swap}; echo eval-gate-* > ran; echo ok"
    target = {"name": "a", "provider": "cli", "command_template": command}
    (job.workspace / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    job.give_to_runner()
    os.chown(temporary, owner, RUNNER_ID)
    temporary.chmod(mode)
    ended = job.pull_request(github.state.add_pull(7), "", {"agent-endpoint": "", "baseline": "none"})
    assert ended.code == 0, ended.log
    assert [path.name for path in temporary.iterdir()] == ["ran"]
    assert (temporary / "ran").read_text() == "eval-gate-*\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write as root and give away what it wrote")
def test_pull_request__in_the_container__all_that_the_step_writes_is_the_workspaces_owners(job, github) -> None:
    """Results where a link of the workspace leads, reports in folders that were missing, logs of coding agents."""
    (job.workspace / "real").mkdir()
    (job.workspace / "link").symlink_to("real")
    target = {"name": "c", "provider": "codex", "executable": "true", "log_dir": "logs/of/codex"}
    settings = {"targets": [target], "outputDir": "link/results", "reports": ["md=out/deep/report.md"]}
    (job.workspace / "eval-gate.json").write_text(json.dumps(settings))
    job.give_to_runner()
    os.lchown(job.workspace / "link", RUNNER_ID, RUNNER_ID)
    ended = job.pull_request(github.state.add_pull(7), "", {"agent-endpoint": "", "baseline": "none"})
    assert ended.code == 3, ended.log
    written = {str(path.relative_to(job.workspace)): path.lstat().st_uid for path in job.workspace.rglob("*")}
    assert {"real/results/latest.json", "out/deep/report.md", "logs/of/codex"} <= written.keys()
    assert {path: owner for path, owner in written.items() if owner != RUNNER_ID} == {}
