"""The explorer: a web page that shows which parts of a skill a page holds, and why."""
