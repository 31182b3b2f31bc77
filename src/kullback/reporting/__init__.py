"""Findings and estimates to text, JSON and one HTML page."""
