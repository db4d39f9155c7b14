"""From any frame or file to columns, and from columns to codes.

Private: everything that passes here. Nothing in this package prints or quotes a row; the one
exception is ``fitting``, which is for the owner's eyes and says so.
"""
