"""An agent that answers two of four questions worse after the change, and a judge that breaks after it."""

import os

CHANGED = os.environ.get("CHANGED") == "1"
ANSWERS = {
    "Refund order 4711": "Order 4711 is refunded.",
    "When are you open?": "We open on Monday.",
    "Cancel order 12": "Order 12 is cancelled.",
    "Who are you?": "I am the desk.",
}


def answer(question):
    if CHANGED and question == "Refund order 4711":
        return "Please call us."
    if CHANGED and question == "Cancel order 12":
        raise RuntimeError("order 12 is locked")
    return ANSWERS[question]


def judge(question, response):
    if CHANGED and question == "Who are you?":
        raise ValueError("the judge gave no JSON")
    return 1 - len(response) / 100
