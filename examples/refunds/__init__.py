"""An agent that refunds suppliers from a CSV of orders: looks up, plans, refunds, mails, closes tickets."""
