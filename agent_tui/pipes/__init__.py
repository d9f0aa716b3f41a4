"""The program's own child processes: started, spoken with a line at a time, ended with their parent."""
