"""What pages show, as plain structs, and how they are made of facts: a module for each page. Pure."""
