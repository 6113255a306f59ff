"""tool-forge's golden, labeled, regression and rubric files."""
