"""The speed of the pipeline: rows a second out of the archive, through the matcher, and what archiving costs."""
