"""Compare judges and node types with people: samples, sheets, a page to answer them, agreement.

sample, type_sample ─► sheet + key ─► people (web, or a spreadsheet) ─► scores
                                      node_types: the same against line labels of a whole data set

Reference: paper §4.2 (judge), §5.1 (node types).
"""
