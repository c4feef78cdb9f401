"""Tests of the room privacy."""
