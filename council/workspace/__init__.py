"""The workspace (KAIROS): organizations, projects, tasks, notes and events. People change them directly, agents by plans.

One function per change decides and computes, in a transaction: `(visit, arguments) -> Change`. Tools and command line share it.
"""
