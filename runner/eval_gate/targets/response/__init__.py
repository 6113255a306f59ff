"""Reader of the responses that settings describe: of agents behind a URL, commands and Python functions."""
