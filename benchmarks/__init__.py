"""Figures, each beside a reference measured in the same run: `python -m benchmarks` rewrites RESULTS.md.

Durations are never asserted in the test suite; they live here.
"""
