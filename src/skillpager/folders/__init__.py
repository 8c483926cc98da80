"""Folders in which skills are searched: which these are, and what walks over them share."""
