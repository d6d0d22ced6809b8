"""The prompt of one exchange: its texts, what they are judged with, and what becomes of the request."""
