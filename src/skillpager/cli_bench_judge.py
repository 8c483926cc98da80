"""`skillpager bench queries` and `skillpager bench judge`."""
