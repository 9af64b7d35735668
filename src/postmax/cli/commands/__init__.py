"""The commands: their options and help texts, one file for each.

A command imports its work when it runs. The work needs torch, which takes more than a second to import; `--help` must
answer at once.
"""
