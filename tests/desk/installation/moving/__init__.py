"""Tests of desk/installation/moving."""
