"""The look of a decision: what a page holds (`page`) and its Markdown (`render`). A pure function of what it is
given."""
