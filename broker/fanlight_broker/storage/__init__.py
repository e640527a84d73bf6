"""What outlives the process: the archive. archive.py is the loop's half, writer_thread.py the thread that writes."""
