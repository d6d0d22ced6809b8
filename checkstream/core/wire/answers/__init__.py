"""What answers of all surfaces share: what stands in no text field, log probabilities, numbers, joining."""
