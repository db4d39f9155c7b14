"""From a request to a certificate: plan, pay, draw, write down.

Private: the rows, and every intermediate result. Public: the plan and the certificate.
"""
