"""The machine by itself: no database, no clock, no outside."""
