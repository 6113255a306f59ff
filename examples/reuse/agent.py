"""Two desks behind one door: small enough to read. In your project this is where the model is asked.

python3 agent.py "Can I get a refund?"
"""

import json
import sys
from pathlib import Path

question = sys.argv[1].lower()
desk = "refunds" if "refund" in question else "orders"
answers = json.loads((Path(__file__).parent / "desks" / f"{desk}.json").read_text(encoding="utf-8"))
print(next((text for word, text in answers.items() if word in question), answers["default"]))
