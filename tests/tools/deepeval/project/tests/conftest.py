import os
from pathlib import Path


def pytest_collection_modifyitems(items):
    """With ONLY_CASES the cases that this file names, one a line; `case` is the parameter that names them."""
    if file := os.environ.get("ONLY_CASES"):
        names = Path(file).read_text().splitlines()
        items[:] = [item for item in items if item.callspec.params["case"] in names]
