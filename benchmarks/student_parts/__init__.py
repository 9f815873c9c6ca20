"""The parts of `students.py`: the task, the files, what is printed, and the engines."""
