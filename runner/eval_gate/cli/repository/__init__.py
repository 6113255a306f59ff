"""Commands about the files of a repository: made, imported, checked, and what they accept."""
