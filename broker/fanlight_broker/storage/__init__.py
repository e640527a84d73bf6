"""What outlives the process: the archive. archive.py is the loop's half, scribe.py the thread that writes."""
