"""`checkstream bench`: load that waits for nobody, sent straight to a scripted model and through proxies in turn.

`scenario` says what is asked for and when, `model` answers, `caller` asks and notes what comes, `targets` are what
stands between, `figures` is what it came to, `table` and `page` show it. Both ends are one process on another core than
the proxy, on one clock, so that the delay of each token is known; how late that process was itself is measured, too.
"""
