"""Queries: what a release needs of its rows, written as SQL that any engine understands.

Private: the answers.
"""
