"""What is known before any row is looked at: the schema, contexts, guarantees and what they cost.

Public: everything here. Nothing in this package can import what has seen a row, so whatever is made
of it alone can be shown to anybody.
"""
