CASES = {
    "Refund order 4711": "is refunded",
    "When are you open?": "Monday",
    "Cancel order 12": "is cancelled",
    "Who are you?": "desk",
}
