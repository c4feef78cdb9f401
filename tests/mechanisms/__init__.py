"""Tests of noise, selection, calibration and release."""
