"""What is to be judged, as data: a class for each kind of evaluator, by dialect where only one has it."""
