"""An HTTP agent as a target."""

import sys

# httpx imports its own command line, with rich and pygments, where they are installed: 45 ms that no run needs
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None tells Python that there is none
