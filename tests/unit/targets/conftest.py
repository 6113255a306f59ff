"""As root, programs are whom the working directory belongs to: here it is a folder of the tests' own."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder_of_tests(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("here")


@pytest.fixture(autouse=True)
def _in_own_folder(request, folder_of_tests, monkeypatch) -> None:
    """The test's own where it has one: making one for each of a thousand was a tenth of the room's time."""
    own = "tmp_path" in request.fixturenames
    monkeypatch.chdir(request.getfixturevalue("tmp_path") if own else folder_of_tests)
