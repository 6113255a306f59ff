"""Eval Gate: did this change break anything your agent could do yesterday, and can you believe the answer?"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["Evaluation", "GateError", "Request", "__version__", "evaluate", "evaluate_async"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from eval_gate.api import Evaluation, GateError, Request, evaluate, evaluate_async
else:

    def __getattr__(name):
        # The Python API needs nearly the whole package: with plain imports, `eval-gate --help` takes 0.40 s of the
        # processor instead of 0.12, and 0.3 s of them before it handles signals and hides its environment.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module("eval_gate.api"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
