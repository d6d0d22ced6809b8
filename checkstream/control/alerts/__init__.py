"""What a fleet's operators are told unasked: conditions over what nodes have reported, and notices of those that hold.

`facts` is what the conditions look at, `conditions` says which of them hold now, `standing` turns that into notices
(one when it begins, reminders, one when it is over), `wording` writes them for each way they leave, and `sending`
sends. All but the last is pure.
"""
