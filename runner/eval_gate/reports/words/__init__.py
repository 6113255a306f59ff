"""The sentences, and how numbers are written. Nothing here knows a view or the form a report has."""
