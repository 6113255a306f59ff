import sys
from pathlib import Path

from agent import answer
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains
from pydantic_evals.reporting import EvaluationReportAdapter

dataset = Dataset(
    name="orders",
    cases=[
        Case(name="opening hours", inputs="When are you open?", evaluators=[Contains("9 to 18")]),
        Case(name="refund [1/2]", inputs="Refund order 4711", evaluators=[Contains("4711 is refunded")]),
        Case(name="where", inputs="Where is order 12?", evaluators=[Contains("on its way")]),
    ],
)
out, *ids = sys.argv[1:]  # the file to write, and with a second one only the cases that it names
names = Path(ids[0]).read_text().splitlines() if ids else None
dataset.cases = [case for case in dataset.cases if names is None or case.name in names]
report = dataset.evaluate_sync(answer)
Path(out).write_bytes(EvaluationReportAdapter.dump_json(report))
