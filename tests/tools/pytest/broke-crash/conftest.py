"""The process is gone half-way, as when the machine has no more memory."""

import os


def pytest_runtest_teardown() -> None:
    os._exit(137)
