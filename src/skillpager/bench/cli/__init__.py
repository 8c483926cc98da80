"""The commands of `skillpager bench`."""
