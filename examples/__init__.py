"""Agents a newcomer can read, run and copy, and the outside world that they act on."""
