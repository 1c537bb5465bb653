"""The tools of the refund agent: typed adapters to payments, mail, tickets and orders of one service."""
