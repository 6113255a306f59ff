"""How the action without Docker starts: which Python, whose environment, what it is told, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.support.host import Checkout, nodes
from tests.support.jobs import read_outputs

NODES = nodes()


@pytest.fixture(params=NODES or ["none"])
def checkout(request, tmp_path, tools) -> Checkout:
    """One cache for all that do not look at how it is filled: that takes seconds."""
    return Checkout(tmp_path, NODES[request.param], tools)


@pytest.fixture
def fresh(tmp_path) -> Checkout:
    """The same with a cache of its own, and nothing in it."""
    return Checkout(tmp_path, next(iter(NODES.values())))


def shim(folder: Path, name: str, text: str) -> str:
    """A folder for the PATH with one program."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return str(folder)


def test_host__first_and_second_step__one_environment_of_its_own_with_everything_handed_over(fresh) -> None:
    given = {
        "INPUT_FAIL-ON": "never",
        "INPUT_MULTI": "two\nlines $(id) `id`",
        "ACTIONS_RUNTIME_TOKEN": "a-token",
        "PYTHONPATH": str(fresh.folder),
        "PIP_TARGET": str(fresh.folder / "elsewhere"),
        "PIP_CONSTRAINT": "/nowhere",
    }
    (fresh.folder / "sitecustomize.py").write_text("print('not ours')\n")
    (fresh.folder / "eval_gate").mkdir()
    (fresh.folder / "eval_gate" / "__main__.py").write_text("print('not ours')\n")
    code, log = fresh.run(**given)
    assert code == 0, log
    assert "not ours" not in log
    assert "Eval Gate was set up with Python 3." in log
    [key] = fresh.kept()
    said = fresh.said(**given)
    assert fresh.kept() == [key]
    assert said["arguments"] == ["action", "--on-host"]
    assert Path(said["prefix"]) == fresh.cache / "eval-gate" / key
    assert not any(str(fresh.folder) == place for place in said["path"])
    assert said["utf8"] == 1
    assert {name: said["environment"][name] for name in given} == given
    assert not (fresh.folder / "elsewhere").exists()


def test_host__setting_up__sees_no_token_and_no_input(fresh) -> None:
    place = shim(fresh.folder / "bin", "python3", f'env >> {fresh.folder}/seen.txt\nexec {sys.executable} "$@"')
    secret = {"INPUT_GITHUB-TOKEN": "ghs_secret", "ACTIONS_RUNTIME_TOKEN": "rt_secret", "GITHUB_TOKEN": "gt_secret"}
    path = f"{place}:{Path(fresh.node).parent}:/usr/bin:/bin"
    said = fresh.said(**secret, PATH=path)
    assert said["environment"]["INPUT_GITHUB-TOKEN"] == "ghs_secret"
    seen = (fresh.folder / "seen.txt").read_text()
    assert f"PATH={place}" in seen
    assert "_secret" not in seen


def test_host__two_jobs_at_once__both_work_and_one_environment_is_left(fresh) -> None:
    running = [fresh.start() for _ in range(2)]
    ended = [(process.communicate(timeout=120)[0], process.returncode) for process in running]
    assert [code for _, code in ended] == [0, 0], ended
    assert len(fresh.kept()) == 1


def test_host__half_made_and_broken_environments__are_never_used(fresh) -> None:
    fresh.run()
    [key] = fresh.kept()
    place = fresh.cache / "eval-gate" / key
    (place / "bin" / "python").unlink()
    (place / "bin" / "python").symlink_to("/gone/python3")  # the Python it was made with was removed
    (fresh.cache / "eval-gate" / f"{key}-1234-abcd").mkdir()  # a job that was killed while it made one
    code, log = fresh.run()
    assert code == 0, log
    assert "was set up" in log
    assert set(fresh.kept()) == {key, f"{key}-1234-abcd"}
    assert "was set up" not in fresh.run()[1]


def test_host__another_release_or_lock__is_another_environment(fresh) -> None:
    before = Path(fresh.said()["prefix"])
    (fresh.package / "__init__.py").write_text("A = 1\n")
    release = Path(fresh.said()["prefix"])
    fresh.lock.write_text("# another\n")
    lock = Path(fresh.said()["prefix"])
    assert len({before, release, lock}) == 3


def test_host__tool_cache_that_cannot_be_written__is_the_jobs_own_folder(checkout) -> None:
    said = checkout.said(RUNNER_TOOL_CACHE="/dev/null/cache")
    assert Path(said["prefix"]).is_relative_to(checkout.temp)


@pytest.mark.parametrize("whose", ["everybody's", "another's", "a link"])
def test_host__place_in_which_somebody_else_may_write__is_not_taken(checkout, whose) -> None:
    """What lies there is run with the job's tokens, and its name can be computed by everybody."""
    cache = checkout.folder / "shared"
    (cache / "eval-gate").mkdir(parents=True)
    if whose == "everybody's":
        cache.chmod(0o777)
    elif whose == "another's":
        if os.geteuid() != 0:
            pytest.skip("only root may give files away")
        os.chown(cache / "eval-gate", 1001, 1001)
    else:
        (cache / "eval-gate").rename(checkout.folder / "elsewhere")
        (cache / "eval-gate").symlink_to(checkout.folder / "elsewhere")
    said = checkout.said(RUNNER_TOOL_CACHE=str(cache))
    assert Path(said["prefix"]).is_relative_to(checkout.temp)


def test_host__no_place_is_ours_alone__is_a_folder_of_its_own(checkout) -> None:
    for place in (checkout.cache, checkout.temp):
        place.chmod(0o777)
    own = checkout.folder / "own"
    own.mkdir()
    try:
        said = checkout.said(TMPDIR=str(own))
    finally:
        for place in (checkout.cache, checkout.temp):
            place.chmod(0o755)
    assert Path(said["prefix"]).is_relative_to(own)


def refused(checkout: Checkout, log: str, code: int) -> str:
    """The sentence of a refusal, which is the log's annotation, and in outputs and summary."""
    [line] = [line for line in log.splitlines() if line.startswith("::error")]
    message = line.removeprefix("::error title=Eval Gate::")
    assert read_or_plain(checkout.files["output"].read_text()) == {"verdict": "inconclusive", "exit-code": str(code)}
    assert message in checkout.files["summary"].read_text()
    assert "node:internal" not in log
    return message


def read_or_plain(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines()) if "<<" not in text else read_outputs(text)


def test_host__no_python__says_what_to_do(checkout) -> None:
    code, log = checkout.run(PATH=str(checkout.temp))
    assert code == 2
    assert refused(checkout, log, 2) == (
        "Eval Gate needs Python 3.11 or later, and there is none here. Put actions/setup-python before this step."
    )


def test_host__old_python__says_which(checkout) -> None:
    place = shim(checkout.folder / "bin", "python3", 'echo \'[[3, 9, 6], "/usr", "arm64"]\'')
    code, log = checkout.run(PATH=place)
    assert code == 2
    assert "there is only an older one (python3 is 3.9.6) here" in refused(checkout, log, 2)


def test_host__old_python3_and_newer_python__takes_the_newer(checkout) -> None:
    place = shim(checkout.folder / "bin", "python3", 'echo \'[[3, 9, 6], "/usr", "arm64"]\'')
    (checkout.folder / "bin" / "python").symlink_to(sys.executable)
    assert checkout.said(PATH=place)["arguments"]


def test_host__program_in_the_workspace__is_no_python_of_ours_where_the_current_folder_is_on_the_path(checkout) -> None:
    shim(checkout.folder, "python3", f"touch {checkout.folder}/ran; exit 1")
    assert checkout.said(PATH=f".:{Path(sys.executable).parent}:/usr/bin:/bin")["arguments"]
    assert not (checkout.folder / "ran").exists()


def test_host__packages_that_cannot_be_had__is_exit_code_3_and_leaves_nothing(fresh) -> None:
    fresh.lock.write_text(f"no-such-package-at-all==1.0 --hash=sha256:{'0' * 64}\n")
    code, log = fresh.run(PIP_NO_INDEX="1")
    assert code == 3
    assert "could not be installed" in refused(fresh, log, 3)
    assert fresh.kept() == []


def test_host__package_with_another_hash__is_not_installed(fresh) -> None:
    wheels = fresh.folder / "wheels"
    wheels.mkdir()
    source = fresh.folder / "thing"
    source.mkdir()
    made = shutil.make_archive(str(wheels / "thing"), "zip", wheels)
    Path(made).rename(wheels / "thing-1.0-py3-none-any.whl")
    fresh.lock.write_text(f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    code, log = fresh.run(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert code == 3
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in log


def test_host__exit_code_of_the_gate__is_the_steps(checkout) -> None:
    code, log = checkout.run(DO="print and fail")
    assert (code, log.count("x")) == (3, 3_000_000)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_host__cancelled__the_gate_is_told_and_ends_in_its_own_way(checkout, number, code) -> None:
    process = checkout.start(DO="wait")
    assert process.stdout is not None
    while "ready" not in (line := process.stdout.readline()):
        assert line, "it ended before it began"
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)
    assert (process.returncode, rest) == (code, "written\n")


@pytest.mark.skipif(
    "of the runner" not in NODES, reason="an older Node than runners have cannot become another program"
)
def test_host__with_the_runners_node__no_process_stays_that_holds_the_environment(tmp_path, tools) -> None:
    checkout = Checkout(tmp_path, NODES["of the runner"], tools)
    process = checkout.start()
    log, _ = process.communicate(timeout=120)
    assert f'"own": {process.pid}' in log
