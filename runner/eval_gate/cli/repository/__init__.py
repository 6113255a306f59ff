"""Commands on the files of a repository: create, import, validate, waive."""
