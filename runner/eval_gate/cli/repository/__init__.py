"""Commands on the files of a repository: init, draft, validate, waive, schema."""
