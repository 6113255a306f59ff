"""External results: detect and read results of other tools, within limits, as rows of one shape."""
