"""Measurements of the runtime. Like any agent's package this one uses only what a user could."""
