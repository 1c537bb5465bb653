"""The demo: its people, its sign-ins, what to click."""
