"""A bucket of an S3-compatible server that nobody here wrote (moto), through s3fs as users install it.

The server has an environment of its own, installed once from `store/requirements.txt`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from eval_gate.results.baseline_store import BaselineStore, StoreError
from eval_gate.results.run_writer import write_result
from eval_gate.struct import replace
from tests.integration.test_integration_run import wait_until
from tests.integration.test_integration_store import MERGE_REQUEST, check_two_machines, run
from tests.support.agents import unused_port
from tests.support.results import make_baseline_run
from tests.support.tools import NotInstallableError, install

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass(frozen=True)
class Server:
    name = "moto"
    folder = Path(__file__).parent / "store"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a server with an empty bucket called `bucket`."""
    try:
        python = install(Server()) / "venv" / "bin" / "python"
    except NotInstallableError as error:
        if os.environ.get("EVAL_GATE_REQUIRE_INTEROP") == "1":
            raise
        pytest.skip(f"*** NOT TESTED with an S3 server, which cannot be installed here: {error} ***")
    url = f"http://127.0.0.1:{(port := unused_port())}"
    command = [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            return httpx.put(f"{url}/bucket").is_success
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers)
        yield url
    finally:
        process.terminate()
        process.wait()


def test_bucket__main_and_merge_request__are_compared_across_machines(endpoint, tmp_path) -> None:
    check_two_machines(tmp_path, "s3://bucket/gate", KEYS | {"AWS_ENDPOINT_URL": endpoint})


@pytest.mark.parametrize(
    ("place", "variables", "why"),
    [
        ("s3://no-bucket/gate", {}, "it does not exist"),
        ("s3://bucket/gate", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}, "Could not connect"),
    ],
)
def test_bucket__that_cannot_be_read__is_no_missing_baseline(endpoint, tmp_path, place, variables, why) -> None:
    done = run(tmp_path / "a", place, {**MERGE_REQUEST, **KEYS, "AWS_ENDPOINT_URL": endpoint, **variables}, 1)
    assert done.returncode == 3, done.stdout + done.stderr
    assert why in " ".join(done.stdout.split())


def test_bucket__many_writers_of_one_name__one_wins(endpoint, tmp_path, monkeypatch) -> None:
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": endpoint}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    written = replace(make_baseline_run({"a": "passed"}), run_id="r1")
    file = write_result(Path("results"), written).file
    store = BaselineStore("s3://bucket/race")

    def write(_: int) -> str:
        try:
            return store.write_run(written, file)
        except StoreError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        ends = sorted(pool.map(write, range(8)))
    assert sum(end.startswith("s3://bucket/race/") and "already" not in end for end in ends) == 1, ends
    assert sum("already" in end for end in ends) == 7, ends
