"""Drafts: policies that are being changed, from the first edit to the approval of exactly these files."""
