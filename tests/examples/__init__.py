"""Tests of the examples: the outside world, and the agents that act on it."""
