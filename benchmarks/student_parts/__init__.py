"""Modules of `students.py`: the task, the files, the report and the engines."""
