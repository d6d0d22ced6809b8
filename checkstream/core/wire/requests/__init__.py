"""What requests of all surfaces share: texts of a prompt, fields, files, tools, the `checkstream` field, shaping."""
