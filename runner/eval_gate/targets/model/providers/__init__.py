"""Chats with the models of all providers. Imports the library of a provider on demand."""
