"""As root, programs are whom the working directory belongs to: here it is the test's own folder."""

import pytest


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
