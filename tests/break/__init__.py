"""Attacks that once worked, each as a named regression test."""
