"""The outside world of the examples: payments, mail, tickets and orders as one small HTTP service.

It runs in a process of its own (`python -m examples.sandbox --port 8100 --home DIR`), keeps what it did in a
file of its own, counts what was really executed, and misbehaves on request. Agents know it by HTTP only and
import nothing from here.
"""
