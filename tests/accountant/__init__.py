"""Tests of the room accountant."""
