"""The console: pages that show an operator what the guard does now, what it did, and that its record holds.

A page is a pure function of a view (`views`); views are made of facts (`facts`), which whoever serves the pages has: a
process, the parent of several, or a control server. `face` is the shell: who may look, and which path is which page.
"""

from checkstream.console.face import Console
from checkstream.console.facts import Facts, Places, Policies, ProgramFacts, RuleFacts, Source
from checkstream.console.opening import open_console

__all__ = ["Console", "Facts", "Places", "Policies", "ProgramFacts", "RuleFacts", "Source", "open_console"]
