"""Checks of a library of skills, and of each skill: what `skillpager library check` reports to authors."""
