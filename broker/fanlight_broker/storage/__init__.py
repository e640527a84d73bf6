"""What outlives the process: the archive. archive.py is its half in the loop, writer_thread.py the other."""
