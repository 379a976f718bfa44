"""Detectors: small classes that each turn samples into one named physical signal, or judge it."""
