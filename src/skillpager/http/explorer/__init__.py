"""The explorer: a web page that shows what a page of a skill holds and why."""
