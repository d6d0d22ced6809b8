"""Were rules right? People look at a sample of what fired and say so. Pure.

`terms` is what is looked at and said, `choosing` which of it is looked at, `judging` what two people's words come to,
`precision` how often a rule was right, week by week, and `exporting` makes tests and labelled data of it.
"""
