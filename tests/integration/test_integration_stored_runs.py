"""Commands that read stored runs: where they look, what a broken configuration is to them, and what they advise."""

import re
from uuid import uuid4

import pytest

from eval_gate.config.settings import SETTINGS
from tests.integration.test_integration_run import write_suite
from tests.support.agents import agent, ok
from tests.support.program import gate

READERS = (
    ("report", "latest"),
    ("drift",),
    ("power",),
    ("view",),
    ("compare", "before.json", "latest"),
    ("merge", "latest"),
)


@pytest.fixture
def kept(tmp_path):
    """A folder in which one run is stored where its configuration says."""
    write_suite(tmp_path, 2)
    (tmp_path / "eval-gate.yaml").write_text("outputDir: out/runs\n")
    with agent(ok) as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
    return tmp_path


@pytest.mark.parametrize("command", READERS)
def test_stored_run__configuration_with_another_mistake__is_read_and_the_mistake_is_said(kept, command) -> None:
    [stored] = kept.glob("out/runs/*/run.json")
    (kept / "before.json").write_text(stored.read_text().replace(stored.parent.name, str(uuid4())))
    sound = gate(kept, *command)
    (kept / "eval-gate.yaml").write_text("outputDir: out/runs\nbogus: 1\ntrials: none\n")
    done = gate(kept, *command)
    assert done.returncode == sound.returncode != 2, done.stderr
    assert "warning: eval-gate.yaml:2: bogus: unknown key\n" in done.stderr
    assert "warning: eval-gate.yaml:3: trials: " in done.stderr
    assert "`eval-gate run` rejects it" in done.stderr
    (counting,) = re.findall("warning: this command uses only (.*) of this configuration;", done.stderr)
    assert set(counting.split(", ")) <= set(SETTINGS)
    assert done.stdout.count("out/runs") == sound.stdout.count("out/runs")


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        ("outputDri: out/runs\n", {}, 'eval-gate.yaml:1: outputDri: unknown key (did you mean "outputDir"?)'),
        ("bogus: 1\noutputDir: 7\n", {}, "eval-gate.yaml:2: outputDir: "),
        ("", {"EVAL_GATE_OUTPUTDIR": "out/runs"}, 'unknown variable (did you mean "EVAL_GATE_OUTPUT_DIR"?)'),
        ("- outputDir\n", {}, "eval-gate.yaml:1: expected a mapping of keys to values"),
    ],
)
def test_stored_run__configuration_that_does_not_say_where__no_other_folder_is_taken(
    kept, text, variables, said
) -> None:
    (kept / "eval-gate.yaml").write_text(text)
    done = gate(kept, "report", "latest", **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[invalid-configuration]" in done.stderr
    assert said in done.stderr


def test_drift__settings_of_its_own_in_a_broken_configuration__count(kept) -> None:
    (kept / "eval-gate.yaml").write_text("outputDir: out/runs\nbogus: 1\npassScore: 7\n")
    done = gate(kept, "drift")
    assert done.returncode == 2
    assert "eval-gate.yaml:3: passScore: " in done.stderr


@pytest.mark.parametrize("command", ["report", "drift", "power", "view", "compare", "calibrate"])
def test_help__of_what_reads_stored_runs__says_that_the_configuration_counts(tmp_path, command) -> None:
    said = " ".join(gate(tmp_path, command, "--help").stdout.split())
    assert "--output-dir DIR Folder in which to find runs" in said
    assert "[default: outputDir of the configuration, or evals/results]" in said
    assert "Folder for results." not in said


def test_merge__before_the_first_run__does_not_advise_the_option_that_only_writes(tmp_path) -> None:
    done = gate(tmp_path, "merge", "latest", "-o", "joined")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error[baseline-not-found]: there is no run in evals/results yet",
        "  hint: make a part there with `eval-gate run --shard 1/2`, or name a part elsewhere by its path",
    ]


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A run in `main/`, its first two thirds joined in `joined/`, and all three in `whole/`."""
    folder = tmp_path_factory.mktemp("joined")
    write_suite(folder, 6)
    (folder / "eval-gate.yaml").write_text("targets: [{name: it, provider: mock, response: ok}]\n")
    assert gate(folder, "run", "--output-dir", "main").returncode == 0
    for part in ("1/3", "2/3", "3/3"):
        if part == "3/3":
            assert gate(folder, "merge", "parts", "-o", "joined").returncode == 3
        assert gate(folder, "run", "--shard", part, "--output-dir", "parts").returncode == 0
    assert gate(folder, "merge", "parts", "-o", "whole").returncode == 0
    return folder


def test_compare__folder_with_a_joined_run_that_misses_a_shard__could_not_decide_and_says_which(joined) -> None:
    done = gate(joined, "compare", "main", "joined")
    assert done.returncode == 3, done.stderr
    assert "GATE INCONCLUSIVE: shard 3 of 3 is missing. " in done.stdout
    done = gate(joined, "compare", "joined", "main")
    assert done.returncode == 3
    assert done.stderr.startswith(
        "error[baseline-incomplete]: joined contains no complete run to compare with: shard 3 of 3 is missing\n"
    )


@pytest.mark.parametrize("form", ["md", "html", "console", "junit"])
def test_report__complete_joined_run__has_no_verdict_yet_and_does_not_say_it_was_not_finished(joined, form) -> None:
    done = gate(joined, "report", "whole", "--format", form)
    assert done.returncode == 0, done.stderr
    # a class of the page is a colour, and nothing that people read
    said = re.sub(r' class="[^"]*"', "", done.stdout.lower().replace("&#96;", "`"))
    assert not any(words in said for words in ("not finished", "inconclusive", "ended before"))
    assert "the run is complete; to get a verdict, run `eval-gate compare baseline run`" in said
    assert ("no verdict yet" in said) is (form != "junit")
    unfinished = gate(joined, "report", "joined", "--format", form)
    assert "shard 3 of 3 is missing" in unfinished.stdout.lower()
