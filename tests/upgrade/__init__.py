"""Homes that earlier versions left behind, and what this version makes of them."""
