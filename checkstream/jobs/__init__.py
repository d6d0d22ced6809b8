"""What happens after an answer has gone out: a durable queue, and the workers that score what was said."""
