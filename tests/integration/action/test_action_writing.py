"""Where the action writes: into the workspace, whatever a pull request's configuration says."""

import json

import pytest

from tests.support.agents import agent

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


@pytest.mark.parametrize(("variable", "place"), [("INPUT_OUTPUT-DIR", "../beside"), ("EVAL_GATE_OUTPUT_DIR", "/tmp/x")])
def test_finding_1__the_workflow_names_a_place_outside__is_an_error_and_not_lost(job, github, variable, place) -> None:
    with agent() as running:
        ended = job.pull_request(github.state.add_pull(7), running.url, **{variable: place})
    assert (ended.code, running.requests) == (2, [])
    assert "leads out of the working directory" in ended.log


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
    assert "leads out of the working directory by a link" in ended.log
    assert not [*elsewhere.iterdir()]
