"""Importers for other tools' eval definitions. They list everything that was not imported."""
