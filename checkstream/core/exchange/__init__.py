"""One exchange: a prompt and the answer to it, their channels, and the order in which all of it leaves."""
