"""A shop's assistant, small enough to read. In your project this is where the model is asked."""

import re

STOCK = {"kettle": 12, "teapot": 0, "mug": 140}


def answer(message: str) -> dict:
    """What the assistant says, and which tools it called for it."""
    calls: list[dict] = []
    found = next((item for item in STOCK if re.search(rf"\b{item}s?\b", message.lower())), None)
    if found is None:
        return {"response": "Which article are you asking about?", "toolCalls": calls}
    calls.append({"name": "look_up_stock", "params": {"item": found}, "success": True})
    if "deliver" in message.lower():
        calls.append({"name": "estimate_delivery", "params": {"item": found}, "success": True})
        return {"response": f"The {found} is with you in two days.", "toolCalls": calls}
    left = STOCK[found]
    return {"response": f"We have {left} of the {found}." if left else f"The {found} is sold out.", "toolCalls": calls}
