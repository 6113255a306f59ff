"""What a gate can see, before anything goes wrong: the chance that a loss is found with this record and these cases."""
