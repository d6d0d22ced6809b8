"""Policies on trial: test cases beside a policy, recorded exchanges under another policy, costs of a program.

Everything here runs real guards on bytes and sends nothing anywhere.
"""
