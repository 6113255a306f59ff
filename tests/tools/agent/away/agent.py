"""The agent under test, which is somewhere where nobody answers."""

import urllib.request


def answer(question: str) -> str:
    return urllib.request.urlopen(f"http://127.0.0.1:9/{len(question)}").read().decode()
