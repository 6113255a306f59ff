"""Commands about results that are there already: judged, compared, joined, looked at, shown."""
