"""Multirotors: layouts, mass properties, catalogue."""
