"""Tidy tables of what every run scored, and the statistics that compare runs."""
