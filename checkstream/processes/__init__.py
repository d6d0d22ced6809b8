"""Several processes that serve as one: a parent that keeps the sockets, and workers that serve on them.

`parent.py` is the whole life of the parent, `member.py` a worker's end of the channel between the two. A worker is the
program itself, started anew: nothing of a running loop is forked.
"""
