"""Monitors: one sparse vector session each, charged in whole when it is opened, and free to evaluate."""
